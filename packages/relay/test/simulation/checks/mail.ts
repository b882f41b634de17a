/** What was sent from account to account, and that each message is where it belongs, once. */
import { ProtocolError, type TimelinePage } from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import { digest } from '../../../src/digest.ts';
import { envelopeId } from '../../../src/messages/message-parts.ts';
import type { MessageOptions } from '../../fixtures/person.ts';
import { isUncertain } from '../clients/agent.ts';
import type { Home } from '../clients/home.ts';
import type { Resident } from '../clients/resident.ts';
import type { Journal } from '../journal.ts';
import type { SimulatedRelay } from '../relay/simulated-relay.ts';

interface Sent {
  readonly id: string;
  readonly envelopeId: string;
  readonly from: Resident;
  readonly to: Resident;
  /** The relay that it was submitted to. */
  readonly relay: SimulatedRelay;
  readonly boxed: ReadonlySet<string>;
  readonly hasOwnCopy: boolean;
  /** Whether the recipient was at home there the whole time. */
  isLocal: boolean;
  outcome: 'pending' | 'accepted' | 'refused' | 'unknown';
}

interface RecordRow {
  readonly rowid: number;
  readonly account: string;
  readonly sequence: number;
  readonly envelope_id: string;
}

/** Refusals that a sender may get although it does nothing wrong. */
const expectedOfTime = ['clock_skew', 'message_expired'];
const expectedOfRemoved = ['device_unknown', 'unauthorized', 'forbidden'];
const expectedOfMoved = [
  'route_stale',
  'unauthorized',
  'target_not_local',
  'device_unknown',
  'forbidden',
];

export class Mail {
  readonly #journal: Journal;
  readonly #relays: readonly SimulatedRelay[];
  readonly #byId = new Map<string, Sent>();
  readonly #byEnvelope = new Map<string, Sent>();
  /** Messages whose records are new, or whose outcome is. */
  readonly #unsettled = new Set<Sent>();
  /** The records that were seen in a database, by row. */
  readonly #records = new Map<SimulatedRelay, Map<number, RecordRow>>();
  /** Records, by account and envelope. */
  readonly #counts = new Map<string, number>();

  constructor(relays: readonly SimulatedRelay[], journal: Journal) {
    this.#relays = relays;
    this.#journal = journal;
  }

  /** Sends a message; resolves when it is certain what became of it. */
  async send(
    from: Resident,
    to: Resident,
    { device, ...boxes }: { readonly device: string } & Pick<MessageOptions, 'boxes' | 'senders'>,
  ): Promise<void> {
    const { home } = from;
    const { boxes: names = [] } = boxes;
    const isForRemoved = names.every((name) => !to.devices.has(name));
    const message = from.person.message(to.person, {
      ...{ device, ...boxes, createdAt: home.clock.now() },
      authorization: to.person.grant(from.person),
    });
    const boxed = [...message.recipient_boxes, ...(message.sender_boxes ?? [])];
    const sent: Sent = {
      id: message.envelope.message_id,
      envelopeId: envelopeId(message.envelope.created_at, digest(canonicalJson(message.envelope))),
      ...{ from, to, relay: home.relay },
      boxed: new Set(boxed.map((box) => box.device_id)),
      hasOwnCopy: message.sender_boxes !== undefined,
      isLocal: isAt(to, home),
      outcome: 'pending',
    };
    this.#byId.set(sent.id, sent);
    this.#byEnvelope.set(sent.envelopeId, sent);
    this.#unsettled.add(sent);
    try {
      await from.agent(device).call(home.relay, 'message.send', message as never);
      sent.isLocal &&= isAt(to, home);
      sent.outcome = 'accepted';
    } catch (error) {
      sent.outcome = isUncertain(error) ? 'unknown' : 'refused';
      if (!(error instanceof ProtocolError)) throw error;
      const { code } = error;
      const isExpected =
        expectedOfTime.includes(code) ||
        (isForRemoved && code === 'device_unknown') ||
        (!from.devices.has(device) && expectedOfRemoved.includes(code)) ||
        (!isAt(from, home) && expectedOfMoved.includes(code));
      this.#journal.must(isExpected, () => `message.send is refused with ${code}`);
    }
  }

  /** The message of an envelope that a device read. */
  find(id: string): Sent | undefined {
    return this.#byId.get(id);
  }

  /** Checks the records that are new since the last check. */
  check(): void {
    for (const relay of this.#relays) this.#readNew(relay);
    for (const sent of this.#unsettled) this.#checkOne(sent);
  }

  /** Checks that every record that was committed once is where it was. */
  checkAll(relay: SimulatedRelay): void {
    const before = this.#records.get(relay) ?? new Map<number, RecordRow>();
    this.#records.delete(relay);
    for (const row of before.values()) this.#count(row, -1);
    const there = this.#readNew(relay);
    for (const other of this.#relays) this.#readNew(other);
    for (const [rowId, row] of before) {
      this.#journal.must(
        there.get(rowId)?.envelope_id === row.envelope_id,
        () => `${relay.name} lost the record ${row.sequence} of ${row.account}`,
      );
    }
    for (const sent of this.#byId.values()) this.#checkOne(sent);
  }

  /** Checks that nothing is under way any more, and every message came to its end. */
  checkEnded(): void {
    for (const relay of this.#relays) this.checkAll(relay);
    for (const sent of this.#byId.values()) {
      if (sent.outcome !== 'accepted') continue;
      const [row] = sent.relay.disk.query<{ status: string; error_code: string | null }>(
        'SELECT status, error_code FROM sent_results WHERE sender = ? AND message_id = ?',
        ...[sent.from.person.account, sent.id],
      );
      const count = this.#relays
        .flatMap(({ disk }) =>
          disk.query<{ n: number }>(
            'SELECT count(*) AS n FROM timeline_records WHERE account = ? AND envelope_id = ?',
            ...[sent.to.person.account, sent.envelopeId],
          ),
        )
        .reduce((sum, { n }) => sum + n, 0);
      const isRight =
        row?.status === 'target_accepted' ? count === 1 : row?.status === 'failed' && count === 0;
      this.#journal.must(
        isRight,
        () => `message ${sent.id} ended as ${row?.status} and is there ${count} times`,
      );
    }
  }

  /** Messages still on their way. */
  get queued(): number {
    return this.#relays
      .flatMap(({ disk }) => disk.query<{ n: number }>('SELECT count(*) AS n FROM deliveries'))
      .reduce((sum, { n }) => sum + n, 0);
  }

  get count(): number {
    return this.#byId.size;
  }

  /** Reads the records that were committed since the last time; returns all. */
  #readNew(relay: SimulatedRelay): ReadonlyMap<number, RecordRow> {
    const known = this.#records.get(relay) ?? new Map<number, RecordRow>();
    this.#records.set(relay, known);
    const last = Math.max(0, ...known.keys());
    const rows = relay.disk.query<RecordRow>(
      'SELECT rowid, account, sequence, envelope_id FROM timeline_records WHERE rowid > ?',
      last,
    );
    for (const row of rows) {
      known.set(row.rowid, row);
      this.#count(row, 1);
    }
    return known;
  }

  #count({ account, envelope_id }: RecordRow, change: number): void {
    const key = `${account} ${envelope_id}`;
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + change);
    const sent = this.#byEnvelope.get(envelope_id);
    if (sent !== undefined) this.#unsettled.add(sent);
  }

  #checkOne(sent: Sent): void {
    const of = ({ person }: Resident) =>
      this.#counts.get(`${person.account} ${sent.envelopeId}`) ?? 0;
    const [own, received] = [of(sent.from), of(sent.to)];
    const limit = sent.outcome === 'refused' ? 0 : 1;
    this.#journal.must(
      received <= limit && own <= (sent.hasOwnCopy ? limit : 0),
      () => `message ${sent.id}, ${sent.outcome}, is there ${own} and ${received} times`,
    );
    if (sent.outcome !== 'pending') this.#unsettled.delete(sent);
    if (sent.outcome !== 'accepted') return;
    this.#journal.must(
      own === (sent.hasOwnCopy ? 1 : 0) && (!sent.isLocal || received === 1),
      () => `message ${sent.id} was accepted and is there ${own} and ${received} times`,
    );
  }
}

/** Whether an account is certainly at home at a relay. */
function isAt(resident: Resident, home: Home): boolean {
  return resident.home === home && !resident.isMoving;
}

/** What one device has read of its account's timeline. */
export class MailReader {
  readonly #mail: Mail;
  readonly #journal: Journal;
  readonly #owner: Resident;
  readonly #device: string;
  /** Message IDs by sequence, for each relay at which the account was at home. */
  readonly #read = new Map<SimulatedRelay, Map<number, string>>();
  #last: Promise<void> = Promise.resolve();

  constructor(
    { mail, journal }: { readonly mail: Mail; readonly journal: Journal },
    owner: Resident,
    device: string,
  ) {
    this.#mail = mail;
    this.#journal = journal;
    this.#owner = owner;
    this.#device = device;
  }

  /** Reads on to the end. */
  async readOn(relay: SimulatedRelay, limit: number): Promise<void> {
    await this.#alone(() => this.#readOn(relay, limit));
  }

  /** Reads everything again: it must be what was read before, and nothing in between. */
  async readAgain(relay: SimulatedRelay): Promise<void> {
    await this.#alone(() => this.#readAgain(relay));
  }

  /** Runs reads one after another. */
  async #alone(read: () => Promise<void>): Promise<void> {
    const done = this.#last.then(read);
    this.#last = done.catch(() => {});
    await done;
  }

  async #readOn(relay: SimulatedRelay, limit: number): Promise<void> {
    const known = this.#known(relay);
    let after = Math.max(-1, ...known.keys());
    for (let hasMore = true; hasMore; ) {
      const page = await this.#page(relay, { after, limit });
      for (const item of page.items) {
        this.#checkItem(item, after);
        after = item.sequence;
        known.set(after, item.envelope.message_id);
      }
      hasMore = page.has_more;
    }
  }

  async #readAgain(relay: SimulatedRelay): Promise<void> {
    const known = this.#known(relay);
    const end = Math.max(-1, ...known.keys());
    const found = new Map<number, string>();
    let after = -1;
    for (let hasMore = true; hasMore && after < end; ) {
      const page = await this.#page(relay, { after, limit: 50 });
      for (const item of page.items) {
        after = item.sequence;
        if (after <= end) found.set(after, item.envelope.message_id);
      }
      hasMore = page.has_more;
    }
    const shown = (read: ReadonlyMap<number, string>) => JSON.stringify([...read]);
    this.#journal.must(
      shown(found) === shown(known),
      () => `${this.#owner.name}'s ${this.#device} reads another past than before`,
    );
  }

  async #page(
    relay: SimulatedRelay,
    params: { readonly after: number; readonly limit: number },
  ): Promise<TimelinePage> {
    const agent = this.#owner.agent(this.#device);
    const answer = await agent.call(relay, 'message.timeline.sync', params);
    return answer as unknown as TimelinePage;
  }

  #checkItem({ sequence, envelope }: TimelinePage['items'][number], after: number): void {
    const { name } = this.#owner;
    const deviceId = this.#owner.agent(this.#device).device?.deviceId ?? '';
    const sent = this.#mail.find(envelope.message_id);
    this.#journal.must(sequence > after, () => `${name} reads ${sequence} after ${after}`);
    const isTheirs = sent !== undefined && [sent.from, sent.to].includes(this.#owner);
    this.#journal.must(
      isTheirs && sent.boxed.has(deviceId) && sent.outcome !== 'refused',
      () => `${name}'s ${this.#device} reads ${envelope.message_id}, which it must not`,
    );
  }

  #known(relay: SimulatedRelay): Map<number, string> {
    const known = this.#read.get(relay) ?? new Map<number, string>();
    this.#read.set(relay, known);
    return known;
  }
}

/** Runs each step at a relay and in the reference model, and compares the answers. */
import { encodeBase64url, ProtocolError } from '@posthouse/protocol';
import { canonicalJson, type JsonObject, type JsonValue } from '@posthouse/protocol/json';
import { expect } from 'vitest';
import { TestChannel, text } from '../../fixtures/channel.ts';
import { Person } from '../../fixtures/person.ts';
import { type InProcessRelay, network } from '../../support/in-process-relay.ts';
import { Follower, readLate } from './client.ts';
import type { callers, Step, StepOf } from './commands.ts';
import { type Call, type Item, Reference, Refusal } from './reference.ts';

export const limits = {
  channelTimelineRetention: 50,
  channelReports: 2,
  channelReportPeriod: 90,
};

type Name = (typeof callers)[number];

/** A device and its owner. */
interface Speaker {
  readonly by: Person;
  readonly device: string;
}

/** Attachments that are never fetched. */
const files = [0, 1, 2].map((number) => ({
  uri: `https://files.example/${number}`,
  hash: `sha256:${encodeBase64url(new Uint8Array(32).fill(number))}`,
  content_type: 'image/png',
  size: number,
}));
const elsewhere = `chan_${encodeBase64url(new Uint8Array(16))}`;

type Extras = StepOf<'post' | 'edit'>['extras'];

export class Scene {
  /** Outcomes by kind of step. */
  readonly tally = new Map<string, { accepted: number; refused: number }>();
  readonly #relay: InProcessRelay;
  readonly #people: ReadonlyMap<string, Person>;
  readonly #channel: TestChannel;
  readonly #model: Reference;
  readonly #follower: Follower;
  readonly #posts: { readonly by: Speaker; readonly params: JsonObject }[] = [];

  private constructor(
    relay: InProcessRelay,
    people: ReadonlyMap<string, Person>,
    channel: TestChannel,
  ) {
    this.#relay = relay;
    this.#people = people;
    this.#channel = channel;
    const { account, deviceId } = { ...channel.owner, ...channel.owner.device() };
    const settings = {
      now: () => relay.clock.now(),
      tolerance: relay.context.limits.authClockTolerance,
      reportLimit: limits.channelReports,
      reportPeriod: limits.channelReportPeriod,
    };
    this.#model = new Reference(settings, {
      by: { account, deviceId },
      params: channel.descriptor,
      retention: limits.channelTimelineRetention,
    });
    this.#follower = new Follower(this.#source);
  }

  /** Creates ann's channel, which ben moderates at first. */
  static async open(relay: InProcessRelay): Promise<Scene> {
    const people = new Map<string, Person>();
    for (const name of ['ann', 'ben', 'cem', 'dora']) {
      const devices = name === 'ann' ? ['phone', 'laptop'] : ['phone'];
      people.set(name, await Person.register(relay, name, devices));
    }
    const [ann, ben] = [...people.values()] as [Person, Person];
    const channel = await TestChannel.create(relay, ann, { moderators: [ben.account] });
    relay.takeNotices();
    return new Scene(relay, people, channel);
  }

  get #source() {
    return { channel: this.#channel, relayId: this.#relay.relayId, model: this.#model };
  }

  async run(step: Step): Promise<void> {
    switch (step.kind) {
      case 'wait':
        return void this.#relay.clock.advance(step.seconds);
      case 'job':
        await this.#relay.runJob('channels.retention');
        this.#model.clean();
        return await this.#compareTimeline();
      case 'restart':
        await this.#relay.restart({ channelTimelineRetention: step.retention });
        this.#model.retention = step.retention;
        return await this.#compareTimeline();
      case 'follow':
        return await this.#follower.sync(step.limit);
      case 'late':
        return await readLate(this.#source, step.limit);
      case 'read':
        return await this.#read(step);
      case 'resolve':
        return await this.#resolve(step);
      case 'close':
        if (!step.isMeant) return;
    }
    await this.#write(step);
    await this.#compareTimeline();
  }

  /** Compares storage and clients with the model at the end. */
  async finish(): Promise<void> {
    await this.#follower.sync(3);
    await readLate(this.#source, 4);
    await this.#relay.runJob('channels.retention');
    this.#model.clean();
    await this.#compareTimeline();
    const { descriptor, head, posts, readable, reports } = this.#model;
    const { revision, status } = descriptor;
    const of = (table: string) => this.#relay.rows(table);
    expect(await of('channels')).toMatchObject([{ head, revision, status }]);
    expect(await of('channel_events')).toHaveLength(readable.length);
    const known = posts.filter(({ isForgotten }) => !isForgotten);
    expect((await of('channel_posts')).map((row) => row.sequence)).toEqual(
      known.map(({ sequence }) => sequence),
    );
    const signers = new Set(readable.map(({ by }) => by.deviceId));
    expect((await of('channel_certificates')).map((row) => row.device_id).sort()).toEqual(
      [...signers].sort(),
    );
    expect(await of('channel_hidden_posts')).toEqual([]);
    const stored = (await of('channel_reports')).map((row) => [
      row.account,
      row.sequence,
      JSON.parse(row.reason as string),
    ]);
    const expected = reports.map(({ by, sequence, reason }) => [by.account, sequence, reason]);
    expect(stored.toSorted()).toEqual(expected.toSorted());
  }

  /** Checks that the timeline equals that of the model. */
  async #compareTimeline(): Promise<void> {
    const { events, has_more } = await this.#channel.read({ after: -1, limit: 500 });
    expect(has_more).toBe(false);
    expect(events.map(shown)).toEqual(this.#model.readable.map(expected));
    const { head } = this.#model;
    expect(await this.#channel.sequences({ after: head })).toEqual([]);
    const session = this.#channel.owner.session();
    const above = { channel_id: this.#channel.channelId, after: head + 1 };
    expect(await this.#relay.codeOf('channel.read', above, { session })).toBe('bad_request');
  }

  async #read({ by, before, after, limit }: StepOf<'read'>): Promise<void> {
    const range = {
      ...(before === undefined ? {} : { before }),
      ...(after === undefined ? {} : { after }),
      limit,
    };
    await this.#compare(
      () => this.#channel.read(range, this.#speaker(by)),
      () => this.#model.read(range),
      (page, wanted) => {
        expect(page.events.map(shown)).toEqual(wanted.events.map(expected));
        expect(page.has_more).toBe(wanted.hasMore);
      },
    );
  }

  async #resolve({ by, revision }: StepOf<'resolve'>): Promise<void> {
    await this.#compare(
      () => this.#channel.resolve(revision, this.#speaker(by)),
      () => this.#model.resolve(revision),
      ({ descriptor }, { payload }) => expect(descriptor).toEqual(payload),
    );
  }

  /** Checks that both answers are equal, and that exactly an accepted write sends one notice. */
  async #write(step: WriteStep): Promise<void> {
    const { speaker, call, method } = this.#callOf(step);
    const before = this.#model.head;
    const session = speaker.by.session(speaker.device);
    await this.#compare(
      () => this.#relay.call(method, call.params, { session }),
      () => this.#callModel(step.kind, call),
      (answer, wanted) => {
        expect(answer).toEqual(typeof wanted === 'number' ? { sequence: wanted } : null);
        this.#tally(step.kind, 'accepted');
        this.#channel.descriptor = this.#model.descriptor as never;
        if (step.kind === 'post') this.#posts.push({ by: speaker, params: call.params });
      },
      () => this.#tally(step.kind, 'refused'),
    );
    const { head } = this.#model;
    const notice = { kind: 'channel-timeline', channel: this.#channel.channelId, head };
    expect(this.#relay.takeNotices()).toEqual(head > before ? [notice] : []);
  }

  #callModel(kind: WriteStep['kind'], call: Call): unknown {
    return kind === 'repeat' ? this.#model.post(call) : this.#model[kind](call);
  }

  async #compare<A, S>(
    callRelay: () => Promise<A>,
    callModel: () => S,
    compare: (answer: A, wanted: S) => void,
    refused: () => void = () => {},
  ): Promise<void> {
    const answer = await callRelay().catch((error: unknown) => {
      if (error instanceof ProtocolError) return error;
      throw error;
    });
    let wanted: S;
    try {
      wanted = callModel();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      expect(error.codes).toContain(answer instanceof ProtocolError ? answer.code : 'ok');
      return refused();
    }
    if (answer instanceof ProtocolError) throw answer;
    compare(answer, wanted);
  }

  #callOf(step: WriteStep): { speaker: Speaker; call: Call; method: string } {
    if (step.kind === 'repeat') return this.#repetition(step);
    const speaker = this.#speaker(step.by);
    const flaw = step.kind === 'report' ? 'none' : step.flaw;
    const unsigned = {
      ...this.#objectOf(step),
      ...(flaw === 'channel' && { channel_id: elsewhere }),
      ...(flaw === 'null' && { topic: step.kind === 'edit' ? { deep: [null] } : null }),
      ...(flaw === 'message_id' && { message_id: `msg_${elsewhere.slice(5)}` }),
      ...(flaw === 'created_at' && { created_at: 1 }),
      ...(flaw === 'closed' && { status: 'closed' }),
    } as JsonObject;
    const signer = flaw === 'signature' ? this.#speaker('dora phone') : speaker;
    const isSigned = flaw !== 'signature' || step.by === 'dora phone';
    const signed = this.#signed(step, { unsigned, signer });
    const params = flaw === 'context' ? { ...signed, $context: network.context } : signed;
    return { speaker, call: this.#call(speaker, params, isSigned), method: methodOf[step.kind] };
  }

  /** Signs the object; a closure signs the final descriptor and sends only some of its members. */
  #signed(
    { kind }: WriteStep,
    { unsigned, signer }: { readonly unsigned: JsonObject; readonly signer: Speaker },
  ): JsonObject {
    if (kind === 'report') return unsigned;
    if (kind !== 'close') return this.#channel.sign(unsigned, signer);
    const { channel_id, revision, updated_at } = unsigned;
    const final = { ...this.#channel.descriptor, revision, updated_at, status: 'closed' };
    const { device_signature } = this.#channel.sign(final as JsonObject, signer);
    return { channel_id, revision, updated_at, device_signature } as JsonObject;
  }

  #objectOf(step: Exclude<WriteStep, StepOf<'repeat'>>): object {
    const { channelId: channel_id, descriptor } = this.#channel;
    switch (step.kind) {
      case 'create':
        return this.#model.items[0]?.payload as JsonObject;
      case 'update': {
        const { description: _about, topic: _topic, ...kept } = descriptor as JsonObject;
        return {
          ...kept,
          ...this.#revision(step),
          ...given({ description: step.description, topic: step.topic }),
          moderators: step.moderators.map((name) => this.#people.get(name)?.account),
        };
      }
      case 'close':
        return { channel_id, ...this.#revision(step) };
      case 'report':
        return { channel_id, target_sequence: this.#target(step), reason: step.reason };
      case 'delete': {
        const $type = network.type('channel.post.delete');
        const target_sequence = this.#target(step);
        return { $type, channel_id, target_sequence, ...given({ reason: step.reason }) };
      }
      case 'edit': {
        const $type = network.type('channel.post.edit');
        return { $type, channel_id, target_sequence: this.#target(step), ...partsOf(step) };
      }
      case 'post': {
        const { message_id } = this.#channel.newPost();
        return { $type: network.type('channel.post'), channel_id, message_id, ...partsOf(step) };
      }
    }
  }

  #revision({ ahead, skew }: StepOf<'update' | 'close'>) {
    const revision = this.#channel.descriptor.revision + ahead;
    return { revision, updated_at: this.#relay.clock.now() + skew };
  }

  /** Repeats an earlier post, unchanged or with other content under its ID. */
  #repetition({ by, which, change }: StepOf<'repeat'>) {
    const known = this.#posts.at(-1 - (which % Math.max(this.#posts.length, 1)));
    const first = this.#channel.newPost() as JsonObject;
    const original = known ?? { by: this.#speaker('ann phone'), params: first };
    const speaker = by === undefined ? original.by : this.#speaker(by);
    const { device_signature: _, ...unsigned } = original.params;
    const other = change === 'body' ? { ...unsigned, body: text('another') } : unsigned;
    const params = change === 'none' ? original.params : this.#channel.sign(other, speaker);
    const isSame = idOf(speaker) === idOf(original.by);
    const call = this.#call(speaker, params, change !== 'none' || isSame);
    return { speaker, call, method: 'channel.post' };
  }

  #target({ target }: StepOf<'edit' | 'delete' | 'report'>): number {
    if ('position' in target) return target.position;
    const isReadable = 'readable' in target;
    const posts = isReadable ? this.#model.readablePosts : this.#model.posts;
    const back = isReadable ? target.readable : target.post;
    return posts.at(-1 - (back % Math.max(posts.length, 1)))?.sequence ?? 1;
  }

  #call({ by, device }: Speaker, params: JsonObject, isSigned: boolean): Call {
    return { by: { account: by.account, deviceId: by.device(device).deviceId }, params, isSigned };
  }

  #speaker(name: Name): Speaker {
    const [person = '', device = ''] = name.split(' ');
    return { by: this.#people.get(person) as Person, device };
  }

  #tally(kind: string, outcome: 'accepted' | 'refused'): void {
    const sum = this.tally.get(kind) ?? { accepted: 0, refused: 0 };
    sum[outcome] += 1;
    this.tally.set(kind, sum);
  }
}

type WriteStep = StepOf<
  'post' | 'repeat' | 'edit' | 'delete' | 'report' | 'update' | 'close' | 'create'
>;

const methodOf = {
  create: 'channel.create',
  update: 'channel.update',
  close: 'channel.close',
  post: 'channel.post',
  edit: 'channel.post.edit',
  delete: 'channel.post.delete',
  report: 'channel.post.report',
} as const;

const idOf = ({ by, device }: Speaker) => by.device(device).deviceId;

/** Drops undefined members. */
function given(members: Record<string, JsonValue | undefined>): object {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

/** Makes the content members of a post or an edit. */
function partsOf({
  body,
  attachments,
  extras,
}: {
  readonly body: string | null | undefined;
  readonly attachments: readonly number[] | null | undefined;
  readonly extras: Extras;
}): object {
  const { proto, ...others } = extras;
  return given({
    body: typeof body === 'string' ? text(body) : body,
    attachments: attachments?.map((number) => files[number] as JsonObject) ?? (attachments as null),
    ...others,
    ['__proto__']: proto,
  } as JsonObject);
}

function shown(event: {
  readonly sequence: number;
  readonly descriptor_rev: number;
  readonly accepted_at: number;
  readonly signer_device_id: string;
  readonly payload: JsonObject;
}) {
  const { sequence, descriptor_rev, accepted_at, signer_device_id, payload } = event;
  return [sequence, descriptor_rev, accepted_at, signer_device_id, canonicalJson(payload)];
}

function expected({ sequence, revision, acceptedAt, by, payload }: Item) {
  return [sequence, revision, acceptedAt, by.deviceId, canonicalJson(payload)];
}

/** A group as its people act in it, and the rules of its timeline. */
import { advanceGroup, type GroupProjection, verifyGroupSyncPage } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { TestGroup } from '../../fixtures/group.ts';
import { network } from '../../support/modules.ts';
import type { Home } from '../clients/home.ts';
import type { Resident } from '../clients/resident.ts';
import type { Journal } from '../journal.ts';
import { Changes, ofDevice, ofTime } from './changes.ts';
import { Log } from './log.ts';

interface StoredEvent {
  readonly sequence: number;
  readonly payload: string;
}

export class Club {
  readonly host: Home;
  readonly group: TestGroup;
  readonly owner: Resident;
  readonly members = new Set<Resident>();
  readonly banned = new Set<Resident>();
  /** People whose membership is being changed. */
  readonly changing = new Set<Resident>();
  readonly messages: Log;
  readonly #changes: Changes;
  readonly #journal: Journal;
  readonly #readers = new Map<string, GroupProjection>();

  private constructor(parts: {
    readonly owner: Resident;
    readonly host: Home;
    readonly group: TestGroup;
    readonly journal: Journal;
  }) {
    this.owner = parts.owner;
    this.host = parts.host;
    this.group = parts.group;
    this.#journal = parts.journal;
    this.members.add(parts.owner);
    this.messages = new Log(`group ${parts.group.groupId}`, parts.journal);
    this.#changes = new Changes(this.messages.name, parts.journal, () => this.#isAnyUncertain());
  }

  static async found(owner: Resident, journal: Journal): Promise<Club> {
    const host = owner.home;
    const group = await TestGroup.create(host, owner.person);
    return new Club({ owner, host, group, journal });
  }

  get id(): string {
    return this.group.groupId;
  }

  /** Runs a change of the chain; the next one begins after it. */
  change(act: () => Promise<void>): Promise<boolean> {
    return this.#changes.make(act);
  }

  /** False once the chain's head is unknown. */
  get isWritable(): boolean {
    return this.#changes.isPossible;
  }

  /** Sends a message as a member. */
  async send(by: Resident, device: string): Promise<void> {
    const epoch = this.#stored<{ epoch: number }>('SELECT epoch FROM groups WHERE group_id = ?')[0];
    const message = this.group.message(by.person, epoch?.epoch ?? 0, device);
    const agent = by.agent(device);
    const write = async () => {
      const params = message as unknown as JsonObject;
      const answer = await agent.call(this.host.relay, 'group.message.send', params);
      return (answer as { sequence: number }).sequence;
    };
    const wasMember = this.#isSettledMember(by);
    await this.messages.submit(message.message_id, write, () => [
      // The epoch changes when the secret is rotated or a member leaves.
      ...['state_conflict', ...ofTime],
      ...(wasMember && this.#isSettledMember(by) ? [] : ['forbidden']),
      ...(by.devices.has(device) && !by.isUncertainAt(this.host.relay) ? [] : ofDevice),
    ]);
  }

  /** Reads on as a member's device and applies what it reads, as clients do. */
  async read(by: Resident, device: string, limit: number): Promise<void> {
    const agent = by.agent(device);
    const group_id = this.id;
    const anchor = { group_id, relay_id: this.host.relayId };
    for (let hasMore = true; hasMore; ) {
      const state = this.#readers.get(agent.name);
      const params = { group_id, after: state?.sequence ?? -1, limit };
      const answer = await agent.call(this.host.relay, 'group.sync', params);
      // Another read of the same device was faster.
      if (this.#readers.get(agent.name) !== state) continue;
      const page = verifyGroupSyncPage(network, answer, params);
      const advance = advanceGroup(network, state ?? anchor, page);
      const { blocked, group, outcomes } = advance;
      this.#journal.must(
        blocked === undefined && outcomes.every(({ kind }) => kind !== 'rejected'),
        () => `${agent.name} cannot verify ${this.messages.name}: ${blocked?.error.message}`,
      );
      if (group === undefined) return;
      this.#readers.set(agent.name, group);
      hasMore = page.has_more;
    }
  }

  /** Checks everything that the host has stored. */
  check(): void {
    const messages = new Map<number, string>();
    const sequences: number[] = [];
    for (const { sequence, payload } of this.#stored<StoredEvent>(
      'SELECT sequence, payload FROM group_messages WHERE group_id = ?',
    )) {
      messages.set(sequence, (JSON.parse(payload) as { message_id: string }).message_id);
      sequences.push(sequence);
    }
    for (const { sequence } of this.#stored<StoredEvent>(
      'SELECT sequence, payload FROM group_events WHERE group_id = ?',
    )) {
      sequences.push(sequence);
    }
    sequences.sort((a, b) => a - b);
    this.#journal.must(
      sequences.every((sequence, index) => sequence === index),
      () => `${this.messages.name} has a gap or a sequence twice: ${sequences.join(' ')}`,
    );
    this.messages.check(messages);
  }

  /** Checks that the chain's head is the last change that these people know was accepted. */
  checkHead(): void {
    if (!this.isWritable) return;
    const [row] = this.#stored<{ chain_head: string }>(
      'SELECT chain_head FROM groups WHERE group_id = ?',
    );
    this.#journal.must(
      row?.chain_head === this.group.head,
      () => `${this.messages.name}: the head is not the last accepted change`,
    );
  }

  /** Changes are signed by the owner, and by those who join or leave. */
  #isAnyUncertain(): boolean {
    return [this.owner, ...this.changing].some((one) => one.isUncertainAt(this.host.relay));
  }

  #isSettledMember(by: Resident): boolean {
    return this.members.has(by) && !this.changing.has(by);
  }

  #stored<T>(sql: string): T[] {
    return this.host.relay.disk.query<T>(sql, this.id);
  }
}

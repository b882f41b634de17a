/** Frames of calls that only a relay answers: groups, channels, pages of timelines, authentication. */
import { type TestAccount, TestContext } from '@posthouse/conformance';
import type { JsonObject } from '@posthouse/protocol/json';
import { TestChannel } from '../packages/conformance/src/channels/test-channel.ts';
import { readEpochs } from '../packages/conformance/src/groups/group-reader.ts';
import { TestGroup } from '../packages/conformance/src/groups/test-group.ts';
import type { Frame, Population } from './population.ts';

/** Calls whose cost is measured, by the name in tables. */
export const measuredCalls = [
  'group.message.send',
  'group.sync, 50 events',
  'channel.post',
  'channel.read, 50 posts',
  'authentication',
] as const;
export type MeasuredCall = (typeof measuredCalls)[number];

/** Entries of a page. */
const pageSize = 50;

function frame(id: number, method: string, params: JsonObject): string {
  return JSON.stringify({ jsonrpc: '2.0', id, method, params });
}

/** Frames that read pages of a timeline with so many records, at any place in it. */
export function pageFrames(count: number, stored: number): Frame[] {
  return Array.from({ length: count }, (_, id) => {
    const after = Math.floor(Math.random() * Math.max(1, stored - pageSize)) - 1;
    return frame(id, 'message.timeline.sync', { after, limit: pageSize });
  });
}

/** A group and a channel of the first accounts at one relay, and calls of them. */
export class CallFrames {
  readonly #context: TestContext;
  readonly #people: readonly TestAccount[];
  readonly #group: TestGroup;
  readonly #channel: TestChannel;
  /** Of the group. */
  readonly #epoch: number;

  private constructor(
    context: TestContext,
    parts: {
      readonly people: readonly TestAccount[];
      readonly group: TestGroup;
      readonly channel: TestChannel;
      readonly epoch: number;
    },
  ) {
    this.#context = context;
    this.#people = parts.people;
    this.#group = parts.group;
    this.#channel = parts.channel;
    this.#epoch = parts.epoch;
  }

  /** Makes group and channel, with as many members and moderators as there are callers. */
  static async open(
    context: TestContext,
    population: Population,
    callers: number,
  ): Promise<CallFrames> {
    const https = await TestContext.open(context.target, 'https');
    const people: TestAccount[] = [];
    for (const device of population.devices.slice(0, callers)) {
      const caller = await https.deviceSession(device);
      const common = { account: device.account, devices: [device], device };
      people.push({ ...common, callers: [caller], caller });
    }
    const [owner, ...others] = people as [TestAccount, ...TestAccount[]];
    const group = await TestGroup.create(https, owner, { member_capacity: 100 });
    if (others.length > 0) await group.admit(...others);
    const moderators = others.map(({ account }) => account.id);
    const channel = await TestChannel.create(https, owner, { moderators });
    const epoch = Math.max(...(await readEpochs(group, owner)));
    return new CallFrames(context, { people, group, channel, epoch });
  }

  /** Frames of a call for each caller; those of an authentication are two. */
  frames(call: MeasuredCall, each: number): Frame[][] {
    return this.#people.map((person) =>
      Array.from({ length: each }, (_, id) => this.#frames(call, person, id)).flat(),
    );
  }

  #frames(call: MeasuredCall, person: TestAccount, id: number): Frame[] {
    const group = this.#group;
    const channel = this.#channel;
    if (call === 'group.message.send') return [frame(id, call, group.message(person, this.#epoch))];
    if (call === 'channel.post') return [frame(id, call, channel.postParams({}, person))];
    if (call === 'group.sync, 50 events') {
      return [frame(id, 'group.sync', { group_id: group.groupId, after: id, limit: pageSize })];
    }
    if (call === 'channel.read, 50 posts') {
      const params = { channel_id: channel.createParams.channel_id as string, limit: pageSize };
      return [frame(id, 'channel.read', { ...params, after: id })];
    }
    return [
      frame(2 * id, 'auth.challenge', { account: person.account.id }),
      (answer) => {
        const { nonce } = JSON.parse(answer).result;
        const proof = this.#context.deviceProof(person.device, nonce);
        return frame(2 * id + 1, 'auth.device.verify', proof);
      },
    ];
  }
}

/** A channel whose host lies to a reader, alone or with the help of a writer. */
import {
  type ChannelEvent,
  type ChannelPage,
  type DeviceCertificate,
  signAsDevice,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { expect } from 'vitest';
import type { Account } from '../../src/index.ts';
import { type Accomplice, accompliceOf, person } from '../groups/lying-group.ts';
import type { LyingRelay } from '../support/lying-relay.ts';
import { network } from '../support/relay-with-clients.ts';
import type { WatchedStore } from '../support/watched-store.ts';
import { postTexts } from './support.ts';

/** Ann owns a channel, Carl moderates it, Bob follows it and has read everything. */
export interface Scene {
  readonly id: string;
  readonly link: string;
  readonly ann: Account;
  readonly bob: Account;
  readonly carl: Account;
  readonly store: WatchedStore;
  readonly annStore: WatchedStore;
  readonly owner: Accomplice;
  readonly moderator: Accomplice;
  readonly outsider: Accomplice;
}

export async function setScene(relay: LyingRelay): Promise<Scene> {
  const [[ann, annStore], [bob, store], [carl, carlStore], [dora, doraStore]] = [
    await person(relay),
    await person(relay),
    await person(relay),
    await person(relay),
  ];
  const { id, link } = await ann.channels.create({ name: 'News', moderators: [carl.id] });
  await bob.channels.follow(link);
  await bob.sync();
  return {
    ...{ id, link, ann, bob, carl, store, annStore },
    owner: await accompliceOf(ann, annStore),
    moderator: await accompliceOf(carl, carlStore),
    outsider: await accompliceOf(dora, doraStore),
  };
}

/** Writes three events that Bob has not read: two posts of the owner, and a revision. */
export async function news({ ann, id }: Scene): Promise<void> {
  await ann.channels.send(id, { text: 'one' });
  await ann.channels.send(id, { text: 'two' });
  await ann.channels.update(id, { description: 'of the day' });
}

/** Expects the result of honest reading. */
export async function isCaughtUp(relay: LyingRelay, { bob, id }: Scene): Promise<void> {
  relay.behave();
  await bob.channels.sync(id);
  expect(await postTexts(bob, id)).toEqual(['one', 'two']);
  expect((await bob.channels.get(id)).descriptor.revision).toBe(1);
}

export type PageLie = (page: ChannelPage, scene: Scene) => object;

/** An event with a correctly signed payload. */
export function event(
  by: Accomplice,
  place: Partial<ChannelEvent>,
  body: JsonObject,
): ChannelEvent {
  const payload = signAsDevice(network, body, by.signer) as unknown as ChannelEvent['payload'];
  return {
    ...{ sequence: 1, descriptor_rev: 0, accepted_at: 1_700_000_000 },
    ...place,
    payload,
    signer_device_id: by.deviceId,
  };
}

let messages = 0;

/** A post with a body, of this channel unless a test says otherwise. */
export function post({ id }: Pick<Scene, 'id'>, text: string, more: JsonObject = {}): JsonObject {
  messages += 1;
  return {
    $type: network.type('channel.post'),
    channel_id: id,
    message_id: `msg_${String(messages).padStart(21, '0')}A`,
    body: { content_type: 'text/plain', text },
    ...more,
  };
}

/** A page with invented events, and the certificates of all accounts. */
export function inventing(...make: ((scene: Scene) => ChannelEvent)[]): PageLie {
  return (_, scene) => ({
    events: make.map((each) => each(scene)),
    certificates: everybody(scene),
    has_more: false,
  });
}

export function everybody(scene: Scene): DeviceCertificate[] {
  return [scene.owner, scene.moderator, scene.outsider].map(({ certificate }) => certificate);
}

/** A group whose host lies to a reader, alone or with the help of a member. */
import {
  type DeviceCertificate,
  type DeviceSigner,
  decodeBase64url,
  deriveDeviceId,
  deviceSigner,
  type GroupEvent,
  type GroupProjection,
  type GroupSyncPage,
  signAsDevice,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { expect } from 'vitest';
import type { Account } from '../../src/index.ts';
import type { LyingRelay } from '../support/lying-relay.ts';
import { network } from '../support/relay-with-clients.ts';
import { WatchedStore } from '../support/watched-store.ts';
import { club, groupTexts } from './support.ts';

/** A device's real keys, for a member that helps the host to lie. */
export interface Accomplice {
  readonly account: string;
  readonly signer: DeviceSigner;
  readonly certificate: DeviceCertificate;
  readonly deviceId: string;
}

export async function accompliceOf(account: Account, store: WatchedStore): Promise<Accomplice> {
  const [keys, certificate] = await store.read(async (tx) => [
    JSON.parse((await tx.get('device-keys', 'device')) ?? ''),
    JSON.parse((await tx.get('certificates', 'own')) ?? '') as DeviceCertificate,
  ]);
  const bytes = (text: string) => decodeBase64url(text) as Uint8Array;
  const signer = deviceSigner(network, {
    signingSeed: bytes(keys.signingSeed),
    encryptionKey: bytes(keys.encryptionKey),
  });
  const deviceId = deriveDeviceId(network, certificate);
  return { account: account.id, signer, certificate, deviceId };
}

/** Ann owns a group; Bob and Carl are members; Bob has read everything. */
export interface Scene {
  readonly id: string;
  readonly ann: Account;
  readonly bob: Account;
  readonly store: WatchedStore;
  readonly annStore: WatchedStore;
  readonly owner: Accomplice;
  readonly member: Accomplice;
  readonly outsider: Accomplice;
  /** Bob's verified state before the lies. */
  readonly state: GroupProjection;
}

/** A new account that connects through a relay that may lie. */
export async function person(relay: LyingRelay): Promise<readonly [Account, WatchedStore]> {
  const store = new WatchedStore();
  return [await (await relay.world.client({ store })).setUp(), store];
}

export async function setScene(relay: LyingRelay): Promise<Scene> {
  const [[ann, annStore], [bob, store], [carl, carlStore], [dora, doraStore]] = [
    await person(relay),
    await person(relay),
    await person(relay),
    await person(relay),
  ];
  const id = await club(ann, [bob, carl]);
  const { state } = await bob.groups.get(id);
  return {
    ...{ id, ann, bob, store, annStore, state: state as GroupProjection },
    owner: await accompliceOf(ann, annStore),
    member: await accompliceOf(carl, carlStore),
    outsider: await accompliceOf(dora, doraStore),
  };
}

/** Writes three events that Bob has not read: the owner's change, and two messages. */
export async function news({ ann, id }: Scene): Promise<void> {
  await ann.groups.update(id, { name: 'Society' });
  await ann.groups.send(id, { text: 'one' });
  await ann.groups.send(id, { text: 'two' });
}

/** Expects the result of honest reading. */
export async function isCaughtUp(relay: LyingRelay, { bob, id }: Scene): Promise<void> {
  relay.behave();
  await bob.groups.sync(id);
  expect(await groupTexts(bob, id)).toEqual(['one', 'two']);
  expect((await bob.groups.get(id)).state?.name).toBe('Society');
  expect((await bob.groups.get(id)).blocked).toBeUndefined();
}

export type PageLie = (page: GroupSyncPage, scene: Scene) => object;

/** Signs a body of the chain, or another object, with any key. */
export function signed(by: Accomplice, scene: Scene, body: JsonObject): GroupEvent {
  const unsigned = { group_id: scene.id, prev_hash: scene.state.head, ...body };
  const payload = signAsDevice(network, unsigned, by.signer) as unknown as GroupEvent['payload'];
  const { epoch, sequence } = scene.state;
  const place = { sequence: sequence + 1, epoch, accepted_at: 1_700_000_000 };
  return { ...place, payload, signer_device_id: by.deviceId };
}

/** A page with one invented event, and the certificates of all accounts. */
export function inventing(
  make: (scene: Scene) => GroupEvent,
  ...also: ((event: GroupEvent) => object)[]
): PageLie {
  return (_, scene) => ({
    events: [also.reduce<object>((event, next) => next(event as GroupEvent), make(scene))],
    certificates: [scene.owner, scene.member, scene.outsider].map((each) => each.certificate),
    has_more: false,
  });
}

/** The same text with another character in the middle, still canonical base64url. */
export function bent(text: string): string {
  const at = Math.floor(text.length / 2);
  return `${text.slice(0, at)}${text[at] === 'A' ? 'B' : 'A'}${text.slice(at + 1)}`;
}

export const type = (name: string) => network.type(name);
export const another = `sha256:${'A'.repeat(43)}`;

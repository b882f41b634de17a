/** A channel to test with: two accounts, their devices and certificates, and signed objects. */
import { noblePrimitives } from '../../src/crypto/index.ts';
import {
  accountSigner,
  type ChannelDescriptor,
  type ChannelEvent,
  type ChannelPost,
  type ChannelPostDelete,
  type ChannelPostEdit,
  type DeviceCertificate,
  type DeviceSigner,
  deriveDeviceId,
  deviceSigner,
  type ErrorCode,
  encodeBase64url,
  Network,
  type NewChannel,
  ProtocolError,
  signAsDevice,
  signChannelDescriptor,
  signDeviceCertificate,
  utf8,
} from '../../src/index.ts';
import type { JsonObject } from '../../src/json/index.ts';

/** Context of the worked example of chapter 06, section 13. */
export const context = 'neo:860833102:0x00112233445566778899aabbccddeeff00112233';
export const network = new Network({ context, primitives: noblePrimitives });
export const relayId = '0xff3380fa8e020053f1d1274f428cd542438f06d5';

const fill = (byte: number, length: number) => new Uint8Array(length).fill(byte);
/** Bytes `from`, `from + 1`, … */
export const run = (from: number, length: number) =>
  Uint8Array.from({ length }, (_, index) => from + index);

export interface Person {
  readonly account: string;
  readonly device: DeviceSigner;
  readonly certificate: DeviceCertificate;
  readonly deviceId: string;
}

export async function person(
  accountKey: Uint8Array,
  options: {
    readonly signingSeed: Uint8Array;
    readonly notBefore?: number;
    readonly expiresAt?: number;
  },
): Promise<Person> {
  const { signingSeed, notBefore = 1_740_000_000, expiresAt = 1_800_000_000 } = options;
  const account = accountSigner(network, accountKey);
  const device = deviceSigner(network, { signingSeed, encryptionKey: fill(9, 32) });
  const parts = { account, device, notBefore, expiresAt };
  const certificate = await signDeviceCertificate(network, parts);
  const deviceId = deriveDeviceId(network, certificate);
  return { account: account.account, device, certificate, deviceId };
}

/** Account key and device of the worked example. */
export const ownerKey = network.primitives.sha256(utf8('example account'));
export const owner = await person(ownerKey, { signingSeed: run(0, 32) });
export const moderator = await person(fill(2, 32), { signingSeed: fill(12, 32) });
export const stranger = await person(fill(3, 32), { signingSeed: fill(13, 32) });

export const facts: NewChannel = {
  creator: owner.account,
  relay_id: relayId,
  nonce: 'AAECAwQFBgcICQoLDA0ODw',
  name: 'Release notes',
  description: 'Public announcements',
  created_at: 1_750_000_000,
};
export const descriptor = signChannelDescriptor(network, owner.device, facts);
export const channelId = descriptor.channel_id;

export const text = (words: string) => ({ content_type: 'text/plain', text: words });
/** A reference to a content of its own for each number. */
export const attachment = (id: number) => ({
  uri: `https://example.com/${id}`,
  hash: `sha256:${encodeBase64url(fill(id, 32))}`,
  content_type: 'image/png',
  size: id,
});

export function post(members: JsonObject = { body: text('one') }, by = owner): ChannelPost {
  return signAsDevice(
    network,
    {
      $type: network.type('channel.post'),
      channel_id: channelId,
      message_id: 'msg_EBESExQVFhcYGRobHB0eHw',
      ...members,
    },
    by.device,
  );
}

export function edit(members: JsonObject, by = owner): ChannelPostEdit {
  return signAsDevice(
    network,
    {
      $type: network.type('channel.post.edit'),
      channel_id: channelId,
      target_sequence: 1,
      ...members,
    },
    by.device,
  );
}

export function deletion(members: JsonObject = {}, by = owner): ChannelPostDelete {
  return signAsDevice(
    network,
    {
      $type: network.type('channel.post.delete'),
      channel_id: channelId,
      target_sequence: 1,
      ...members,
    },
    by.device,
  );
}

export function event(
  sequence: number,
  payload: JsonObject & ChannelEvent['payload'],
  outer: { readonly by?: Person; readonly revision?: number } = {},
): ChannelEvent {
  return {
    sequence,
    descriptor_rev: outer.revision ?? 0,
    payload,
    accepted_at: 1_750_000_000 + sequence,
    signer_device_id: (outer.by ?? owner).deviceId,
  };
}

/** The object with some members changed and signed anew; `undefined` leaves one out. */
export function resigned<T extends JsonObject>(object: T, changes: JsonObject, by = owner): T {
  const entries = Object.entries({ ...object, ...changes });
  const kept = Object.fromEntries(entries.filter(([, value]) => value !== undefined));
  return signAsDevice(network, kept, by.device) as unknown as T;
}

/** Runs something that must fail with a `ProtocolError`, and gives its code. */
export function codeOf(work: () => unknown): ErrorCode {
  try {
    work();
  } catch (error) {
    if (error instanceof ProtocolError) return error.code;
    throw error;
  }
  throw new Error('did not throw');
}

export const revision = (number: number, changes: JsonObject = {}): ChannelDescriptor =>
  resigned<ChannelDescriptor>(descriptor, {
    revision: number,
    updated_at: descriptor.updated_at + number,
    ...changes,
  });

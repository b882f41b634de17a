/** A group to test with: four people with one device each, and a story that signs its events. */
import { expect } from 'vitest';
import { noblePrimitives } from '../../src/crypto/index.ts';
import {
  accountSigner,
  clientSecretCommitment,
  createKeyRotated,
  type DeviceCertificate,
  decideGroupEvent,
  deriveGroupId,
  deviceSigner,
  type ErrorCode,
  encodeBase64url,
  type GroupAnchor,
  type GroupChainKind,
  type GroupEvent,
  type GroupProjection,
  type GroupSigners,
  Network,
  ProtocolError,
  reduceGroup,
  type SigningDevice,
  saveGroup,
  sealGroupMessage,
  signAsDevice,
  signDeviceCertificate,
  signingDevice,
  startGroup,
  type VerifiedGroupEvent,
  verifyGroupEvent,
} from '../../src/index.ts';
import type { JsonObject } from '../../src/json/index.ts';

export const context = 'neo:860833102:0x00112233445566778899aabbccddeeff00112233';
export const network = new Network({ context, primitives: noblePrimitives });
export const relayId = `0x${'ab'.repeat(20)}`;
export const now = 1_750_000_000;

export const fill = (byte: number, length: number) => new Uint8Array(length).fill(byte);
/** A different value on every call, the same in every run. */
export function counting(): (length: number) => Uint8Array {
  let next = 0;
  return (length) => {
    next += 1;
    return fill(next % 256, length);
  };
}

export interface Person extends SigningDevice {
  readonly certificate: DeviceCertificate;
  /** X25519 private key of the device. */
  readonly devicePrivateKey: Uint8Array;
  /** X25519 member key pair. */
  readonly memberPrivateKey: Uint8Array;
  readonly memberKey: string;
}

export const publicKey = (privateKey: Uint8Array) =>
  encodeBase64url(network.primitives.x25519.publicKey(privateKey));

async function person(seed: number, notBefore = now - 1_000): Promise<Person> {
  const account = accountSigner(network, fill(seed, 32));
  const devicePrivateKey = fill(seed + 40, 32);
  const keys = { signingSeed: fill(seed + 20, 32), encryptionKey: devicePrivateKey };
  const device = deviceSigner(network, keys);
  const expiresAt = notBefore + 1_000_000;
  const certificate = await signDeviceCertificate(network, {
    account,
    device,
    notBefore,
    expiresAt,
  });
  const memberPrivateKey = fill(seed + 60, 32);
  const memberKey = publicKey(memberPrivateKey);
  const signing = signingDevice(network, account.account, device);
  return { ...signing, certificate, devicePrivateKey, memberPrivateKey, memberKey };
}

export const alice = await person(1);
export const bob = await person(2);
export const carol = await person(3);
export const dave = await person(4);
export const people = [alice, bob, carol, dave] as const;

const signers: GroupSigners = new Map(people.map((each) => [each.deviceId, each.certificate]));

export const nonce = encodeBase64url(fill(7, 16));
export const groupId = deriveGroupId(network, {
  creator: alice.account,
  nonce,
  relay_id: relayId,
});
export const anchor: GroupAnchor = { group_id: groupId, relay_id: relayId };
export const clientSecret = fill(77, 32);
export const commitment = clientSecretCommitment(network, groupId, clientSecret);

/** `account` and key of a person, as approvals name it. */
export const memberOf = (each: Person, key = each.memberKey) => ({
  account: each.account,
  member_encryption_public_key: key,
});

/** A signed object of this network's type `kind`. */
export const signed = (by: Person, kind: string, members: JsonObject) =>
  signAsDevice(network, { $type: network.type(kind), ...members }, by);

export const creationBody = (changes: JsonObject = {}) =>
  signed(alice, 'group.create', {
    group_id: groupId,
    nonce,
    name: 'Reading circle',
    member_capacity: 10,
    invite_policy: 'administrators',
    owner: memberOf(alice),
    client_secret_commitment: commitment,
    ...changes,
  });

/** An event as a host would append it, whatever its content. */
export const eventOf = (payload: JsonObject, outer: Partial<GroupEvent>): GroupEvent => ({
  sequence: 0,
  epoch: 0,
  accepted_at: now,
  payload: payload as GroupEvent['payload'],
  ...outer,
});

/** The timeline of one group, written the way a host does: verified, decided, appended. */
export class Story {
  readonly events: GroupEvent[] = [];
  group: GroupProjection;

  constructor(changes: JsonObject = {}) {
    const creation = eventOf(creationBody(changes), { signer_device_id: alice.deviceId });
    this.events.push(creation);
    this.group = startGroup(network, verifyGroupEvent(network, creation, signers), anchor).group;
  }

  /** A body on the current head. */
  body(by: Person, kind: GroupChainKind, members: JsonObject = {}) {
    return signed(by, kind, { group_id: groupId, prev_hash: this.group.head, ...members });
  }

  /** The event that a body would become, not appended. */
  event(by: Person, kind: GroupChainKind, members: JsonObject = {}): GroupEvent {
    return this.position(this.body(by, kind, members), by);
  }

  position(payload: JsonObject, by: Person): GroupEvent {
    const event = eventOf(payload, {
      sequence: this.group.sequence + 1,
      epoch: this.group.epoch,
      signer_device_id: by.deviceId,
    });
    const verified = verifyGroupEvent(network, event, signers);
    // Tried in both epochs, so that a refusal for another reason shows as itself.
    try {
      decideGroupEvent(this.group, verified);
    } catch (error) {
      if (error instanceof ProtocolError && error.message.startsWith('epoch:')) {
        return { ...event, epoch: event.epoch + 1 };
      }
    }
    return event;
  }

  /** Verifies and applies an event. */
  append(event: GroupEvent): GroupEvent {
    this.group = reduceGroup(network, this.group, verifyGroupEvent(network, event, signers));
    this.events.push(event);
    return event;
  }

  do(by: Person, kind: GroupChainKind, members: JsonObject = {}): GroupEvent {
    return this.append(this.event(by, kind, members));
  }

  admit(...newcomers: Person[]): GroupEvent {
    const members = newcomers.map((each) => memberOf(each));
    return this.do(alice, 'group.application.approval', { members });
  }

  /** A rotation that the relay makes itself. */
  rotate(): GroupEvent {
    const { sequence, epoch } = this.group;
    const outer = { sequence: sequence + 1, epoch: epoch + 1 };
    return this.append(eventOf(createKeyRotated(network), outer));
  }

  message(by: Person, changes: Partial<GroupEvent> = {}): GroupEvent {
    const { sequence, epoch } = this.group;
    const payload = sealGroupMessage(network, {
      group_id: groupId,
      from: by,
      epoch,
      applicationSecret: fill(9, 32),
      createdAt: now,
      content: { $type: network.type('group.message.content') },
      random: (length) => fill(sequence + 1, length),
    });
    return eventOf(payload, {
      sequence: sequence + 1,
      epoch,
      signer_device_id: by.deviceId,
      ...changes,
    });
  }

  /** Verifies an event the way a client does before it asks the reducer. */
  verified(event: GroupEvent): VerifiedGroupEvent {
    return verifyGroupEvent(network, event, signers);
  }
}

/** The code of the protocol error that `work` throws. */
export function codeOf(work: () => unknown): ErrorCode {
  try {
    work();
  } catch (error) {
    if (error instanceof ProtocolError) return error.code;
    throw error;
  }
  throw new Error('nothing was refused');
}

/** Alice owns, Bob administers, Carol is a member, Dave is outside. */
export function threesome(changes: JsonObject = {}): Story {
  const story = new Story(changes);
  story.admit(bob, carol);
  story.do(alice, 'group.role.update', { account: bob.account, role: 'administrator' });
  return story;
}

export const role = (story: Story, who: Person) => story.group.members.get(who.account)?.role;
/** Refuses an event and proves that the state stayed as it was. */
export function refuse(story: Story, event: GroupEvent) {
  const before = saveGroup(story.group);
  const verified = story.verified(event);
  const code = codeOf(() => reduceGroup(network, story.group, verified));
  expect(saveGroup(story.group)).toEqual(before);
  return code;
}

export const tryTo = (story: Story, by: Person, kind: GroupChainKind, members: JsonObject = {}) =>
  refuse(story, story.event(by, kind, members));

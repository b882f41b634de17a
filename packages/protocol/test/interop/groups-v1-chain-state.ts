/** The chain of `groups-v1.json` replayed, and helpers of its tests. */
import { expect } from 'vitest';
import {
  checkSchema,
  type DeviceCertificate,
  decodeBase64url,
  deriveDeviceId,
  deviceSigner,
  type ErrorCode,
  type GroupAnchor,
  GroupEvent,
  type GroupProjection,
  type GroupSigners,
  type Network,
  ProtocolError,
  reduceGroup,
  type SigningDevice,
  signAsDevice,
  startGroup,
  verifyGroupEvent,
} from '../../src/index.ts';
import type { JsonObject } from '../../src/json/index.ts';
import type { Actor, ManagementChain } from './groups-v1-shape.ts';

export const bytesOf = (text: string) => decodeBase64url(text) as Uint8Array;
/** A deep copy of a value of the vectors, which cannot be written to. */
export const copy = <T>(value: T) => JSON.parse(JSON.stringify(value)) as T;

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

/** An actor of the vectors, able to sign. */
export interface Player extends SigningDevice {
  readonly certificate: DeviceCertificate;
  readonly key: string;
}

/** The chain of the vectors, replayed. */
export class Chain {
  readonly network: Network;
  readonly data: ManagementChain;
  readonly anchor: GroupAnchor;
  /** Certificates of all actors, and of the second device of A. */
  readonly signers: GroupSigners;
  readonly #states: GroupProjection[] = [];

  constructor(network: Network, data: ManagementChain) {
    this.network = network;
    this.data = data;
    this.anchor = { group_id: data.group_id, relay_id: data.relay_id };
    const others = data.signer_account_binding.cases.map((each) => each.certificate);
    const all = [...data.actors.map((actor) => actor.certificate), ...others];
    this.signers = new Map(all.map((each) => [deriveDeviceId(network, each), each]));
  }

  player(label: string): Player {
    const actor = this.data.actors.find((each) => each.label === label) as Actor;
    const seed = bytesOf(actor.signing_private_key);
    const signer = deviceSigner(this.network, { signingSeed: seed, encryptionKey: seed });
    return {
      account: actor.certificate.account,
      deviceId: actor.device_id,
      certificate: actor.certificate,
      key: actor.member_encryption_public_key,
      sign: (message) => signer.sign(message),
    };
  }

  /** State after `chain[index]`. */
  after(index: number): GroupProjection {
    if (this.#states.length === 0) {
      let group: GroupProjection | undefined;
      for (const { event } of this.data.chain) {
        group = this.apply(group, event);
        this.#states.push(group);
      }
    }
    return this.#states[index] as GroupProjection;
  }

  /** Verifies and applies an event. */
  apply(
    group: GroupProjection | undefined,
    event: GroupEvent,
    signers: GroupSigners = this.signers,
  ): GroupProjection {
    checkSchema(GroupEvent, event);
    const verified = verifyGroupEvent(this.network, event, signers);
    if (group === undefined) return startGroup(this.network, verified, this.anchor).group;
    return reduceGroup(this.network, group, verified);
  }

  /** Applies an event that must be refused; the code, and proof that the state stayed. */
  refuse(group: GroupProjection, event: GroupEvent): ErrorCode {
    const before = plain(group);
    const code = codeOf(() => this.apply(group, event));
    expect(plain(group)).toEqual(before);
    return code;
  }

  /** A body on a group's head, signed by an actor, as the event that would come next. */
  event(
    group: GroupProjection,
    label: string,
    body: JsonObject & { $type: string },
    options: { readonly epoch?: number; readonly head?: string } = {},
  ): GroupEvent {
    const player = this.player(label);
    const { head = group.head, epoch = group.epoch } = options;
    const full = { prev_hash: head, ...body, group_id: group.group_id };
    return {
      sequence: group.sequence + 1,
      epoch,
      accepted_at: 1_730_000_100,
      signer_device_id: player.deviceId,
      payload: signAsDevice(this.network, full, player),
    };
  }

  /** An event with a changed payload, signed again by an actor. */
  resigned(event: GroupEvent, label: string, change: JsonObject): GroupEvent {
    const { device_signature, ...body } = copy(event.payload) as JsonObject & { $type: string };
    const payload = signAsDevice(this.network, { ...body, ...change }, this.player(label));
    return { ...copy(event), payload: payload as unknown as GroupEvent['payload'] };
  }
}

/** A projection in the form the vectors give it. */
export function plain(group: GroupProjection): JsonObject {
  const members = [...group.members.values()].map(({ since, ...member }) => member);
  return {
    head: group.head,
    status: group.status,
    members: Object.fromEntries(members.map((member) => [member.account, member])),
    bans: [...group.bans],
    name: group.name,
    description: group.description,
    member_capacity: group.member_capacity,
    invite_policy: group.invite_policy,
    client_secret_commitment: group.client_secret_commitment,
  };
}

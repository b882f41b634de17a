/**
 * Messages of the relay DHT: libp2p's Kademlia protobuf, without its providers and with the rules of
 * 07 §B6 and §B7. A relay answers a message that fails a check by closing or resetting the stream.
 */
import { concatBytes, equalBytes, hex } from '../encoding/bytes.ts';
import {
  bytesField,
  encodeBytesField,
  encodeVarintField,
  type ProtobufValue,
  readProtobuf,
  varintField,
} from '../encoding/protobuf.ts';
import { badRequest } from '../errors.ts';
import { isMultihash } from '../identity/peer-key.ts';
import { limits } from '../limits.ts';
import { decodeMultiaddr, isAddressOf, type TcpAddress } from './multiaddr.ts';

/** The types of messages that this protocol gives a meaning. */
export const kadTypes = { putValue: 0, getValue: 1, findNode: 4 } as const;

/** A record of the DHT: for an account route, its final document as UTF-8 JSON. */
export interface KadRecord {
  /** The raw resource key, 32 bytes. */
  readonly key?: Uint8Array | undefined;
  readonly value?: Uint8Array | undefined;
}

/** A record with both fields. */
export interface CompleteKadRecord extends KadRecord {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
}

/** A peer that an answer names. */
export interface KadPeer {
  /** Multihash bytes of the Peer ID. */
  readonly id: Uint8Array;
  /** Binary multiaddrs. */
  readonly addrs: readonly Uint8Array[];
}

/** A message of the DHT, request or answer, as decoded: no rule but the encoding was checked. */
export interface KadMessage {
  /** One of {@link kadTypes}, or a number without a meaning here. */
  readonly type: number;
  readonly key?: Uint8Array | undefined;
  readonly record?: KadRecord | undefined;
  readonly closerPeers?: readonly KadPeer[];
}

/** A request that has passed {@link checkKadRequest}. */
export type KadRequest = KadMessage &
  (
    | { readonly type: 1 | 4; readonly key: Uint8Array; readonly record?: undefined }
    | { readonly type: 0; readonly key: Uint8Array; readonly record: CompleteKadRecord }
  );

/** How much of an answer is used. */
export interface KadBounds {
  /** Entries of `closerPeers`; the ones after them are not decoded. */
  readonly peers: number;
  /** Addresses of one peer. */
  readonly addresses: number;
}

const field = { type: 1, key: 2, record: 3, closerPeers: 8 } as const;
const recordField = { key: 1, value: 2 } as const;
const peerField = { id: 1, addrs: 2 } as const;

/**
 * Encodes a message of the DHT. Field `type` is always written, also if it is 0.
 *
 * @example
 * const request = encodeFrame(encodeKadMessage({ type: kadTypes.getValue, key }));
 */
export function encodeKadMessage(message: KadMessage): Uint8Array {
  const { type, key, record, closerPeers = [] } = message;
  const parts = [encodeVarintField(field.type, type)];
  if (key !== undefined) parts.push(encodeBytesField(field.key, key));
  if (record !== undefined) parts.push(encodeBytesField(field.record, encodeRecord(record)));
  for (const peer of closerPeers) parts.push(encodeBytesField(field.closerPeers, encodePeer(peer)));
  return concatBytes(...parts);
}

function encodeRecord({ key, value }: KadRecord): Uint8Array {
  return concatBytes(
    key === undefined ? new Uint8Array() : encodeBytesField(recordField.key, key),
    value === undefined ? new Uint8Array() : encodeBytesField(recordField.value, value),
  );
}

function encodePeer({ id, addrs }: KadPeer): Uint8Array {
  const addresses = addrs.map((address) => encodeBytesField(peerField.addrs, address));
  return concatBytes(encodeBytesField(peerField.id, id), ...addresses);
}

/**
 * Encodes a `FIND_NODE` message for a nonempty raw lookup input: protobuf, without the frame's
 * length. The reply repeats `type` and `key`.
 *
 * @example
 * const request = encodeFrame(encodeFindNode(deriveRouteKey(network, account)));
 */
export function encodeFindNode(raw: Uint8Array): Uint8Array {
  if (raw.length === 0) throw new TypeError('a lookup input is not empty');
  return encodeKadMessage({ type: kadTypes.findNode, key: raw });
}

/**
 * Decodes a message of the DHT. If a field is repeated, its last value counts, a repeated `record`
 * merges, and each `closerPeers` is one more peer, up to the bounds; peers without an ID and unknown
 * fields are ignored. The bytes are views of the input.
 *
 * @throws ProtocolError `bad_request` for an encoding error, a wrong wire type, or no `type`
 * @example
 * const message = decodeKadMessage(bytes, { peers: 40, addresses: 8 });
 * checkKadRequest(message);
 */
export function decodeKadMessage(bytes: Uint8Array, bounds: KadBounds): KadMessage {
  const steps = decodeKadMessageInSteps(bytes, bounds);
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/**
 * Decodes as {@link decodeKadMessage} does, in steps: a message of a megabyte may have half a million fields.
 *
 * @example
 * const steps = decodeKadMessageInSteps(bytes, { peers: 40, addresses: 8 });
 * let step = steps.next();
 * while (step.done !== true) step = steps.next();
 * const message = step.value;
 */
export function* decodeKadMessageInSteps(
  bytes: Uint8Array,
  bounds: KadBounds,
): Generator<undefined, KadMessage, undefined> {
  const pace = new Pace();
  let type: number | undefined;
  let key: Uint8Array | undefined;
  let record: KadRecord | undefined;
  const closerPeers: KadPeer[] = [];
  for (const [number, value] of readProtobuf(bytes, 'message')) {
    if (number === field.type) type = varintField(value, 'message.type');
    else if (number === field.key) key = bytesField(value, 'message.key');
    else if (number === field.record) {
      record = { ...record, ...(yield* decodeRecord(value, pace)) };
    } else if (number === field.closerPeers) {
      yield* addPeer(closerPeers, value, { pace, bounds });
    }
    if (pace.isOver()) yield;
  }
  // 07 §D2 leaves open what a message without `type` means: it is refused.
  if (type === undefined) throw badRequest('message.type', 'missing');
  return {
    type,
    ...(key === undefined ? {} : { key }),
    ...(record === undefined ? {} : { record }),
    closerPeers,
  };
}

/** Fields that are read in one step, some hundred microseconds. */
const fieldsOfStep = 1_000;

/** Counts the fields of a message, with those of its record and peers. */
class Pace {
  #count = 0;

  /** Counts one field; whether it is the last one of a step. */
  isOver(): boolean {
    this.#count += 1;
    return this.#count % fieldsOfStep === 0;
  }
}

function* decodeRecord(field: ProtobufValue, pace: Pace): Generator<undefined, KadRecord> {
  const bytes = bytesField(field, 'message.record');
  let record: KadRecord = {};
  for (const [number, value] of readProtobuf(bytes, 'message.record')) {
    if (number === recordField.key) {
      record = { ...record, key: bytesField(value, 'message.record.key') };
    } else if (number === recordField.value) {
      record = { ...record, value: bytesField(value, 'message.record.value') };
    }
    if (pace.isOver()) yield;
  }
  return record;
}

/** Adds a peer of an answer, if there is room and the peer has an ID. */
function* addPeer(
  peers: KadPeer[],
  field: ProtobufValue,
  { pace, bounds }: { readonly pace: Pace; readonly bounds: KadBounds },
): Generator<undefined, void> {
  const bytes = bytesField(field, 'message.closerPeers');
  if (peers.length >= bounds.peers) return;
  let id: Uint8Array | undefined;
  const addrs: Uint8Array[] = [];
  for (const [number, value] of readProtobuf(bytes, 'message.closerPeers')) {
    if (number === peerField.id) id = bytesField(value, 'message.closerPeers.id');
    else if (number === peerField.addrs) {
      const address = bytesField(value, 'message.closerPeers.addrs');
      if (addrs.length < bounds.addresses) addrs.push(address);
    }
    if (pace.isOver()) yield;
  }
  if (id !== undefined) peers.push({ id, addrs });
}

/**
 * Checks a request's form: a type with a meaning, a key of the length that its operation demands,
 * and a record in `PUT_VALUE` alone, with the key of the message. The record's value is not checked.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * const message = decodeKadMessage(bytes, { peers: 40, addresses: 8 });
 * checkKadRequest(message);
 * const key = message.key;
 */
export function checkKadRequest(message: KadMessage): asserts message is KadRequest {
  const { type, key, record } = message;
  const isLookup = type === kadTypes.findNode;
  if (!isLookup && type !== kadTypes.getValue && type !== kadTypes.putValue) {
    throw badRequest('message.type', 'expected PUT_VALUE, GET_VALUE or FIND_NODE');
  }
  if (key === undefined || key.length === 0) throw badRequest('message.key', 'missing');
  if (!isLookup && key.length !== limits.dhtKeyBytes) {
    throw badRequest('message.key', 'expected 32 bytes');
  }
  if (type === kadTypes.putValue) checkRecord(record, key);
  else if (record !== undefined) throw badRequest('message.record', 'not allowed here');
}

/**
 * Checks an answer's form against its request: the same type and key; no record for `FIND_NODE`; a
 * record with the key of the request for `GET_VALUE`; for `PUT_VALUE` the record that was sent, byte
 * for byte. An answer to `PUT_VALUE` without a record is valid and acknowledges nothing.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkKadReply(kadRequest, reply);
 * const value = reply.record?.value;
 */
export function checkKadReply(request: KadRequest, reply: KadMessage): void {
  const { type, key, record } = reply;
  if (type !== request.type) throw badRequest('message.type', 'expected the one of the request');
  if (key === undefined || !equalBytes(key, request.key)) {
    throw badRequest('message.key', 'expected the one of the request');
  }
  if (record === undefined) return;
  if (type === kadTypes.findNode) throw badRequest('message.record', 'not allowed here');
  checkRecord(record, key);
  if (request.type === kadTypes.putValue && !equalBytes(record.value, request.record.value)) {
    throw badRequest('message.record.value', 'expected the one of the request');
  }
}

function checkRecord(
  record: KadRecord | undefined,
  key: Uint8Array,
): asserts record is CompleteKadRecord {
  if (record === undefined) throw badRequest('message.record', 'missing');
  if (record.key === undefined || !equalBytes(record.key, key)) {
    throw badRequest('message.record.key', 'expected the key of the message');
  }
  if (record.value === undefined) throw badRequest('message.record.value', 'missing');
}

/** A peer that an answer names, for the checks of 07 §B4: nothing of it was verified. */
export interface KadCandidate {
  /** Multihash bytes. */
  readonly peerId: Uint8Array;
  /** May be empty: the peer may be known already. */
  readonly addresses: readonly TcpAddress[];
}

/**
 * Returns the peers of an answer as candidates: peers with a malformed ID are dropped, repeated ones
 * too, and so are addresses that are not TCP or that name another peer.
 *
 * @example
 * const [nearest] = kadCandidates(reply);
 */
export function kadCandidates(reply: KadMessage): KadCandidate[] {
  const candidates = new Map<string, KadCandidate>();
  for (const { id, addrs } of reply.closerPeers ?? []) {
    if (!isMultihash(id) || candidates.has(hex(id))) continue;
    const addresses = addrs.flatMap((bytes) => {
      const address = decodeMultiaddr(bytes);
      return address !== undefined && isAddressOf(address, id) ? [address] : [];
    });
    // A copy: the view would hold the whole message, up to a megabyte, for as long as the candidate.
    candidates.set(hex(id), { peerId: id.slice(), addresses });
  }
  return [...candidates.values()];
}

/** What serving and asking the relay DHT have in common. */
import { ProtocolError } from '@posthouse/protocol';
import { FrameError, type KadRequest } from '@posthouse/protocol/federation';
import { JsonError } from '@posthouse/protocol/json';
import type { PeerFault } from '../peer-faults.ts';

/** Names of message types for metrics. */
const typeNames = { 0: 'put_value', 1: 'get_value', 4: 'find_node' } as const;

export type DhtTypeName = (typeof typeNames)[keyof typeof typeNames];

export const dhtTypeName = (type: KadRequest['type']): DhtTypeName => typeNames[type];

/** Codes of messages and records that are invalid whatever the clocks and registries say. */
const faultCodes: readonly string[] = ['bad_request', 'request_too_large', 'invalid_signature'];

/** Returns the fault of the peer that an error shows, if it shows one. */
export function dhtFaultOf(error: unknown): PeerFault | undefined {
  if (error instanceof FrameError) return 'frame';
  if (error instanceof JsonError) return 'dht_message';
  const isInvalid = error instanceof ProtocolError && faultCodes.includes(error.code);
  return isInvalid ? 'dht_message' : undefined;
}

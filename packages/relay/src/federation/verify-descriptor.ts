/** Verification of another relay's descriptor, with the name of the rule that failed. */
import {
  checkDescriptor,
  checkDescriptorStatus,
  classifyEndpoint,
  descriptorPeerId,
  descriptorSignatures,
  type Libp2pAddress,
  ProtocolError,
  type RelayDescriptor,
  type RelayEntry,
} from '@posthouse/protocol';
import { type JsonValue, parseJson } from '@posthouse/protocol/json';
import type { RelayContext } from '../context.ts';
import { type PeerCheck, PeerRefusal } from './peer-refusal.ts';

type Verifying = Pick<RelayContext, 'network' | 'clock' | 'verifier' | 'limits'>;

const checks: Partial<Record<string, PeerCheck>> = {
  bad_request: 'descriptor_invalid',
  forbidden: 'not_active',
  stale_state: 'descriptor_expired',
  invalid_signature: 'descriptor_signature',
};

/**
 * Parses the text of a descriptor: strict JSON of limited size.
 *
 * @throws PeerRefusal `descriptor_malformed`
 */
export function parseDescriptor({ limits }: Pick<Verifying, 'limits'>, text: string): JsonValue {
  const most = limits.federationDescriptorBytes;
  if (Buffer.byteLength(text) > most) {
    throw new PeerRefusal('descriptor_malformed', `the descriptor is over ${most} bytes`);
  }
  try {
    return parseJson(text);
  } catch (error) {
    throw new PeerRefusal('descriptor_malformed', 'the descriptor is not JSON', { cause: error });
  }
}

/**
 * Verifies a descriptor against the registry record of its relay (07 §A9, rules 1 to 7).
 *
 * @throws PeerRefusal `descriptor_invalid`, `not_active`, `descriptor_expired`,
 *   `descriptor_signature`
 */
export async function verifyAgainstRecord(
  { network, clock, verifier }: Verifying,
  value: JsonValue,
  entry: RelayEntry,
): Promise<RelayDescriptor> {
  try {
    checkDescriptor(network, value);
    checkDescriptorStatus(value, { entry, now: clock.now() });
    await verifier.verify(descriptorSignatures(network, value), 'descriptor');
    return value;
  } catch (error) {
    const check = error instanceof ProtocolError ? checks[error.code] : undefined;
    if (check === undefined) throw error;
    throw new PeerRefusal(check, (error as Error).message, { cause: error });
  }
}

/** A relay that may be dialled, or was admitted: its ID, Peer ID and addresses are one to one. */
export interface EligiblePeer {
  readonly relayId: string;
  /** Multihash bytes. */
  readonly peerId: Uint8Array;
  readonly descriptor: RelayDescriptor;
  /** The libp2p TCP addresses of the descriptor, in its order. */
  readonly addresses: readonly Libp2pAddress[];
}

/** Returns what a verified descriptor says about its relay as a peer. */
export function peerOf(descriptor: RelayDescriptor): EligiblePeer {
  const addresses = descriptor.endpoints.flatMap((item) => {
    const endpoint = classifyEndpoint(item);
    return endpoint.kind === 'libp2p' ? [endpoint.address] : [];
  });
  return {
    relayId: descriptor.relay_id,
    peerId: descriptorPeerId(descriptor),
    descriptor,
    addresses,
  };
}

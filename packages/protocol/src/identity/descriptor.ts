import type { SignatureCheck } from '../crypto/primitives.ts';
import { verifySignatures } from '../crypto/signatures.ts';
import { equalBytes, utf8Length } from '../encoding/bytes.ts';
import { badRequest, ProtocolError } from '../errors.ts';
import { limits } from '../limits.ts';
import {
  AccountPublicKey,
  checkNoNull,
  checkObject,
  memberPath,
  RelayId,
  Signature,
  type Static,
  Type,
  TypeName,
  UnixSeconds,
} from '../schema.ts';
import { classifyEndpoint } from './endpoint.ts';
import type { Network } from './network.ts';
import type { RelayEntry } from './registry.ts';
import { deriveRelayId } from './relay-id.ts';
import { signatureMember } from './signature-member.ts';
import type { AccountSigner } from './signers.ts';

/** A relay's signed declaration of its addresses and services (chapter 01, section 13). */
export const RelayDescriptor = Type.Object({
  $type: TypeName,
  relay_id: RelayId,
  public_key: AccountPublicKey,
  endpoints: Type.Array(Type.String({ minLength: 1 }), { minItems: 1 }),
  capabilities: Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), { maxItems: limits.capabilities }),
  ),
  expires_at: UnixSeconds,
  relay_signature: Signature,
});
export type RelayDescriptor = Static<typeof RelayDescriptor>;

/**
 * Checks everything about a descriptor that needs neither its signature nor the registry nor the
 * time: structure, addresses (13.2), capabilities, one Peer ID, and that the key derives the relay
 * ID.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkDescriptor(network, value);
 * console.log(value.relay_id);
 */
export function checkDescriptor(
  network: Network,
  value: unknown,
  path = '',
): asserts value is RelayDescriptor {
  checkObject(network, { type: 'relay.descriptor', schema: RelayDescriptor }, value, path);
  checkNoNull(value, path);
  checkEndpoints(value.endpoints, memberPath(path, 'endpoints'));
  checkCapabilities(value.capabilities ?? [], memberPath(path, 'capabilities'));
  if (deriveRelayId(network, value.public_key) !== value.relay_id) {
    throw badRequest(path, 'public_key does not derive relay_id');
  }
}

function checkEndpoints(endpoints: readonly string[], path: string): void {
  checkDistinct(endpoints, path);
  let https = 0;
  let peerId: Uint8Array | undefined;
  for (const [index, item] of endpoints.entries()) {
    const endpoint = classifyEndpoint(item, memberPath(path, index));
    if (endpoint.kind === 'https') https += 1;
    if (endpoint.kind !== 'libp2p') continue;
    peerId ??= endpoint.address.peerId;
    if (!equalBytes(peerId, endpoint.address.peerId)) throw badRequest(path, 'several Peer IDs');
  }
  if (https === 0) throw badRequest(path, 'no HTTPS address');
  if (peerId === undefined) throw badRequest(path, 'no libp2p TCP address');
}

function checkCapabilities(capabilities: readonly string[], path: string): void {
  checkDistinct(capabilities, path);
  for (const [index, name] of capabilities.entries()) {
    if (utf8Length(name) > limits.capabilityBytes) {
      throw badRequest(memberPath(path, index), `over ${limits.capabilityBytes} bytes`);
    }
  }
}

function checkDistinct(items: readonly string[], path: string): void {
  if (new Set(items).size !== items.length) throw badRequest(path, 'repeats an element');
}

const byRelay = signatureMember('relay_signature', 'p256');

/**
 * Returns the bytes that the relay signs: the descriptor without its signature, addresses as they
 * are (EP5).
 *
 * @example
 * const signature = await relaySigner.sign(descriptorSigningInput(network, descriptor));
 */
export function descriptorSigningInput(
  network: Network,
  descriptor: Omit<RelayDescriptor, 'relay_signature'>,
): Uint8Array {
  return byRelay.input(network, descriptor);
}

/**
 * Returns the descriptor's signature.
 *
 * @example
 * verifySignatures(primitives, descriptorSignatures(network, descriptor), 'descriptor');
 */
export function descriptorSignatures(
  network: Network,
  descriptor: RelayDescriptor,
): SignatureCheck[] {
  return [byRelay.check(network, descriptor, descriptor.public_key)];
}

/**
 * Checks a descriptor completely (13.3) against the registry record it was asked for by.
 *
 * @throws ProtocolError as `checkDescriptor`; `bad_request` if it is of another relay than the
 *   record; `forbidden` if the record is not `active`; `stale_state` once expired;
 *   `invalid_signature`
 * @example
 * const entry = await registry.getRelay(relayId);
 * if (entry === undefined) throw new ProtocolError('not_found', 'relay');
 * verifyDescriptor(network, value, { entry, now });
 * const { https } = descriptorAddresses(value);
 */
export function verifyDescriptor(
  network: Network,
  value: unknown,
  { entry, now }: { readonly entry: RelayEntry; readonly now: number },
): asserts value is RelayDescriptor {
  checkDescriptor(network, value);
  checkDescriptorStatus(value, { entry, now });
  verifySignatures(network.primitives, descriptorSignatures(network, value), 'descriptor');
}

/**
 * Checks a verified descriptor again against the registry record and the time; for callers that
 * store descriptors, or verify signatures elsewhere.
 *
 * @throws ProtocolError `bad_request`, `forbidden`, `stale_state` as `verifyDescriptor`
 * @example
 * checkDescriptorStatus(descriptor, { entry, now });
 */
export function checkDescriptorStatus(
  descriptor: Pick<RelayDescriptor, 'relay_id' | 'expires_at'>,
  { entry, now }: { readonly entry: RelayEntry; readonly now: number },
): void {
  if (descriptor.relay_id !== entry.relay_id) {
    throw badRequest('relay_id', 'is not the relay of the registry record');
  }
  if (entry.status !== 'active') {
    throw new ProtocolError('forbidden', 'the registry does not list the relay as active');
  }
  if (now >= descriptor.expires_at) {
    throw new ProtocolError('stale_state', 'the descriptor has expired');
  }
}

/**
 * Returns the addresses of a checked descriptor by transport; unknown transports are left out.
 *
 * @example
 * const { https, wss } = descriptorAddresses(descriptor);
 */
export function descriptorAddresses(descriptor: Pick<RelayDescriptor, 'endpoints'>): {
  readonly https: string[];
  readonly wss: string[];
  readonly libp2p: string[];
} {
  const addresses = { https: [] as string[], wss: [] as string[], libp2p: [] as string[] };
  for (const item of descriptor.endpoints) {
    const { kind } = classifyEndpoint(item);
    if (kind !== 'other') addresses[kind].push(item);
  }
  return addresses;
}

/**
 * Returns the Peer ID of a checked descriptor, as multihash bytes.
 *
 * @example
 * const key = ed25519KeyOfPeer(descriptorPeerId(descriptor));
 */
export function descriptorPeerId(descriptor: Pick<RelayDescriptor, 'endpoints'>): Uint8Array {
  for (const item of descriptor.endpoints) {
    const endpoint = classifyEndpoint(item);
    if (endpoint.kind === 'libp2p') return endpoint.address.peerId;
  }
  throw badRequest('endpoints', 'no libp2p TCP address');
}

/**
 * Returns whether a descriptor declares an optional module.
 *
 * @example
 * hasCapability(descriptor, 'group.host.v1'); // true
 */
export function hasCapability(
  descriptor: Pick<RelayDescriptor, 'capabilities'>,
  name: string,
): boolean {
  return descriptor.capabilities?.includes(name) ?? false;
}

/** The members of a descriptor that the relay chooses. */
export interface DescriptorFields {
  readonly endpoints: string[];
  readonly capabilities?: string[];
  /** Unix seconds. */
  readonly expires_at: number;
}

/**
 * Makes a relay's descriptor.
 *
 * @throws ProtocolError `bad_request` for addresses or capabilities the protocol does not allow
 * @example
 * const descriptor = await signDescriptor(network, relaySigner, {
 *   endpoints: [
 *     'https://relay.example.com/svc/v1',
 *     `/dns4/relay.example.com/tcp/4201/p2p/${peerIdOf(publicKeyBytes)}`,
 *   ],
 *   expires_at: now + 86_400,
 * });
 */
export async function signDescriptor(
  network: Network,
  relay: AccountSigner,
  fields: DescriptorFields,
): Promise<RelayDescriptor> {
  const unsigned = {
    ...fields,
    $type: network.type('relay.descriptor'),
    relay_id: deriveRelayId(network, relay.publicKey),
    public_key: relay.publicKey,
  };
  const descriptor = await byRelay.sign(network, unsigned, relay);
  checkDescriptor(network, descriptor);
  return descriptor;
}

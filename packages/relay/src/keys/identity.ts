import { ed25519Identity, type PeerIdentity } from '@posthouse/peer';
import {
  type AccountSigner,
  accountSigner,
  deriveRelayId,
  encodeBase64url,
  type Network,
  peerIdOf,
} from '@posthouse/protocol';
import type { RelayIdentity } from '../context.ts';
import { checkSecret } from './check-proof.ts';
import type { RelayKeys } from './keys.ts';

/** The relay's identity with the signer of its descriptor. */
export interface SigningIdentity extends RelayIdentity {
  readonly signer: AccountSigner;
  /** The peer key, for connections with other relays. */
  readonly peer: PeerIdentity;
  /** Of proofs that a request comes from a command with the relay's keys. */
  readonly checkSecret: Uint8Array;
}

/** Derives the relay's identity from its keys; private keys stay inside its functions. */
export function relayIdentity(network: Network, keys: RelayKeys): SigningIdentity {
  const { p256, ed25519 } = network.primitives;
  const signer = accountSigner(network, keys.relay);
  return {
    relayId: deriveRelayId(network, signer.publicKey),
    publicKey: signer.publicKey,
    peerId: peerIdOf(ed25519.publicKey(keys.peer)),
    sign: (message) => encodeBase64url(p256.sign(keys.relay, message)),
    signer,
    peer: ed25519Identity(keys.peer),
    checkSecret: checkSecret(keys.relay),
  };
}

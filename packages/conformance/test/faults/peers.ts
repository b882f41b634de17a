/** Faults in which relays are admitted, and in what is sent to a dialled one. */
import { Eligibility } from '../../../relay/src/federation/eligibility.ts';
import { type PeerCheck, PeerRefusal } from '../../../relay/src/federation/peer-refusal.ts';
import { PeerSet } from '../../../relay/src/federation/peer-set.ts';
import { type EligiblePeer, peerOf } from '../../../relay/src/federation/verify-descriptor.ts';
import { all, replace, type SeededFault } from './replace.ts';

/** Admits relays that fail these checks alone. */
export function admittingWithout(...checks: readonly PeerCheck[]): Disposable {
  const admitted = new Map<string, EligiblePeer>();
  return all(
    replace(
      Eligibility.prototype,
      'admit',
      (original) =>
        async function (this: Eligibility, remote, expected, signal) {
          try {
            return await original.call(this, remote, expected, signal);
          } catch (error) {
            if (!(error instanceof PeerRefusal) || !checks.includes(error.check)) throw error;
            const shown = peerOf(JSON.parse(remote.descriptor));
            const peer = { ...shown, relayId: expected.relayId ?? shown.relayId };
            admitted.set(peer.relayId, peer);
            return peer;
          }
        },
    ),
    replace(
      Eligibility.prototype,
      'find',
      (original) =>
        function (this: Eligibility, relayId) {
          return admitted.get(relayId) ?? original.call(this, relayId);
        },
    ),
  );
}

export const peerFaults: readonly SeededFault[] = [
  {
    fault: 'admits relays that the registry does not list',
    check: 'peer.admission/refused-unlisted',
    seed: () => admittingWithout('not_listed', 'registry_busy'),
  },
  {
    fault: 'admits suspended relays',
    check: 'peer.admission/refused-suspended',
    seed: () => admittingWithout('not_active', 'registry_busy'),
  },
  {
    fault: 'verifies no signature of a descriptor',
    check: 'peer.admission/refused-signature-altered',
    seed: () => admittingWithout('descriptor_signature'),
  },
  {
    fault: 'admits relays with an expired descriptor',
    check: 'peer.admission/refused-expired',
    seed: () => admittingWithout('descriptor_expired'),
  },
  {
    fault: 'does not compare the Peer ID of the handshake and of the descriptor',
    check: 'peer.admission/refused-descriptor-of-another-relay',
    seed: () => admittingWithout('peer_id_bound', 'peer_id_taken', 'peer_id_changed'),
  },
  {
    fault: 'keeps relays that were suspended',
    check: 'peer.admission/loses-suspended',
    seed: () => replace(PeerSet.prototype, 'drop', () => () => {}),
  },
  {
    fault: 'serves a relay on when its descriptor has expired',
    check: 'peer.admission/loses-expired-descriptor',
    seed: () =>
      all(
        replace(PeerSet.prototype, 'isCurrent', () => () => true),
        replace(PeerSet.prototype, 'drop', () => () => {}),
      ),
  },
  {
    fault: 'sends requests to a dialled relay with the descriptor of another one',
    check: 'peer.dial/refuses-the-descriptor-of-another-relay',
    seed: () => admittingWithout('relay_id_expected'),
  },
];

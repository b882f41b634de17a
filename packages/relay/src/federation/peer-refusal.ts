/** The check of admission that another relay failed (07 §B4). A label of metrics: a closed set. */
export type PeerCheck =
  /** The handshake's Peer ID is not the one that was dialled. */
  | 'peer_id_expected'
  /** The descriptor is too large or not strict JSON, or its `relay_id` is not canonical. */
  | 'descriptor_malformed'
  /** The descriptor is of another relay than the one that was dialled. */
  | 'relay_id_expected'
  /** The other side is this relay. */
  | 'own_relay'
  /** The operator blocked the relay. */
  | 'blocked'
  /** It sent too many invalid messages a short while ago. */
  | 'misbehaved'
  /** Strangers caused too many registry reads. */
  | 'registry_busy'
  | 'registry_unavailable'
  | 'not_listed'
  /** The registry lists it as disabled or suspended. */
  | 'not_active'
  /** Rules 1, 4, 6 and 7 of 07 §A9: the key, addresses, capabilities, one Peer ID. */
  | 'descriptor_invalid'
  | 'descriptor_expired'
  | 'descriptor_signature'
  /** No verified descriptor is known, and none could be fetched. */
  | 'descriptor_unavailable'
  /** The descriptor binds another Peer ID than the handshake proved. */
  | 'peer_id_bound'
  /** Another relay, or this one, has the Peer ID already. */
  | 'peer_id_taken'
  /** The relay's Peer ID is another one now, and its registered endpoint does not confirm it. */
  | 'peer_id_changed'
  /** As many relays are admitted as the limit allows. */
  | 'full';

/** Refuses another relay, with the check that failed. */
export class PeerRefusal extends Error {
  override readonly name = 'PeerRefusal';
  readonly check: PeerCheck;

  constructor(check: PeerCheck, message: string, options?: ErrorOptions) {
    super(message, options);
    this.check = check;
  }
}

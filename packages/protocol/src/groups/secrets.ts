/** Client secret, its commitment, and the secret that applications derive from (05 §3.4, §3.8). */
import type { Random } from '../crypto/primitives.ts';
import { encodeBase64url } from '../encoding/base64url.ts';
import { concatBytes } from '../encoding/bytes.ts';
import type { Network } from '../identity/network.ts';

/**
 * Makes a client group secret or relay epoch secret: 32 bytes from a secure source (05 §7.1).
 *
 * @example
 * const secret = createGroupSecret(random);
 */
export function createGroupSecret(random: Random): Uint8Array {
  return random(32);
}

/**
 * Computes the commitment to a client secret. Computing it needs the secret; the relay compares
 * texts (05 §3.4).
 *
 * @param secret 32 bytes
 * @returns `sha256:` and 43 characters
 * @example
 * clientSecretCommitment(network, group_id, clientSecret); // 'sha256:…'
 */
export function clientSecretCommitment(
  network: Network,
  groupId: string,
  secret: Uint8Array,
): string {
  return network.hash({
    $type: network.type('group.client_secret.commitment'),
    group_id: groupId,
    secret: encodeBase64url(secret),
  });
}

/** The two secrets of an epoch and what they belong to. */
export interface EpochSecrets {
  readonly group_id: string;
  readonly epoch: number;
  /** The one in force in that epoch, verified against `clientSecret`. */
  readonly client_secret_commitment: string;
  /** 32 bytes. */
  readonly clientSecret: Uint8Array;
  /** 32 bytes. */
  readonly relaySecret: Uint8Array;
}

/**
 * Derives the application secret of an epoch, 32 bytes. Call it only after both secrets were opened
 * from their boxes and the commitment was verified (05 §3.8).
 *
 * @example
 * const { epoch, client_secret_commitment } = group;
 * const secrets = { group_id, epoch, client_secret_commitment, clientSecret, relaySecret };
 * const applicationSecret = deriveEpochApplicationSecret(network, secrets);
 */
export function deriveEpochApplicationSecret(network: Network, epoch: EpochSecrets): Uint8Array {
  return network.primitives.hkdfSha256({
    secret: concatBytes(epoch.clientSecret, epoch.relaySecret),
    salt: network.salt('group-epoch-salt/v1'),
    info: network.bytes({
      $type: network.type('group.epoch_secret'),
      group_id: epoch.group_id,
      epoch: epoch.epoch,
      client_secret_commitment: epoch.client_secret_commitment,
    }),
    length: 32,
  });
}

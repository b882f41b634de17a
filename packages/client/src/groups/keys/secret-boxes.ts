/** Sealing the client secret to member keys (05 §3.6). */
import {
  type GroupMemberKey,
  type GroupSecretBox,
  ProtocolError,
  sealClientSecret,
} from '@posthouse/protocol';
import type { AccountCore } from '../../core.ts';
import { ClientError } from '../../errors.ts';

/** The client secret of a group, with its commitment. */
export interface ClientSecret {
  readonly group_id: string;
  readonly client_secret_commitment: string;
  /** 32 bytes. */
  readonly secret: Uint8Array;
}

/**
 * Seals one box for each account, to the key of a verified request or of the verified chain.
 *
 * @throws ClientError `invalid_input` with an account to whose key nothing can be sealed: a
 *   correctly signed key may be one of low order (01 E2)
 */
export function sealBoxes(
  core: AccountCore,
  { secret, ...bound }: ClientSecret,
  members: Iterable<GroupMemberKey>,
): Record<string, GroupSecretBox> {
  const boxes = new Map<string, GroupSecretBox>();
  for (const { account, member_encryption_public_key } of members) {
    const context = { ...bound, account, member_encryption_public_key };
    try {
      const box = sealClientSecret(core.network, context, { secret, random: core.random });
      boxes.set(account, box);
    } catch (cause) {
      if (!(cause instanceof ProtocolError)) throw cause;
      const message = `${account} has a key that nothing can be sealed to: reject or remove it`;
      throw new ClientError('invalid_input', message, { cause });
    }
  }
  return Object.fromEntries(boxes);
}

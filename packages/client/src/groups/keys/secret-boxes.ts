/** The client secret, sealed for others (05 §3.6). */
import {
  type GroupMemberKey,
  type GroupSecretBox,
  ProtocolError,
  sealClientSecret,
} from '@posthouse/protocol';
import type { AccountCore } from '../../core.ts';
import { ClientError } from '../../errors.ts';

/** What is sealed, and for which group. */
export interface ClientSecret {
  readonly group_id: string;
  readonly client_secret_commitment: string;
  /** 32 bytes. */
  readonly secret: Uint8Array;
}

/**
 * One box for each account, to the key that a verified request or the verified chain names.
 *
 * @throws ClientError `invalid_input` naming an account to whose key nothing can be sealed: its
 *   signature may be right, and the key chosen so that no secret is shared by it (01 E2)
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
      const message = `${account} has a key that nothing can be sealed to`;
      throw new ClientError('invalid_input', message, { cause });
    }
  }
  return Object.fromEntries(boxes);
}

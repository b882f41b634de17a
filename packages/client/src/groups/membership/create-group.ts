/** Creating a group (05 §13.2). */
import type { GroupInvitePolicy } from '@posthouse/protocol';
import type { AccountCore } from '../../core.ts';
import {
  ClientError,
  checkGroupBody,
  checkInput,
  clientSecretCommitment,
  createGroupNonce,
  createGroupSecret,
  deriveGroupId,
  emptyGroupRow,
  encodeBase64url,
  newMemberKey,
  putClientSecret,
  putGroup,
  putMemberKey,
  readGroupBuffered,
  sealClientSecret,
  signAsDevice,
  submitCreation,
} from '../../taken.ts';
import type { GroupRow } from '../group-rows.ts';

export interface NewGroup {
  readonly name: string;
  readonly description?: string | undefined;
  /** Limit of members; by default the host's limit. */
  readonly capacity?: number | undefined;
  readonly invitePolicy?: GroupInvitePolicy | undefined;
  /** Relay ID of the host; by default the home relay. It never changes. */
  readonly relayId?: string | undefined;
}

/**
 * Creates a group. Keys and creation are stored before the request leaves; if the answer is lost,
 * the next `sync` repeats the same creation.
 *
 * @returns the group ID
 * @throws ClientError `invalid_input`; `no_relay` if the relay does not host groups
 */
export async function createGroup(
  core: AccountCore,
  facts: NewGroup,
  signal: AbortSignal,
): Promise<string> {
  const { network, account, device, random, store } = core;
  const relayId = facts.relayId ?? (await core.home()).relayId;
  const memberLimit = await memberLimitOf(core, relayId, signal);
  const member_capacity = facts.capacity ?? memberLimit;
  const nonce = createGroupNonce(random);
  const group_id = deriveGroupId(network, { creator: account, nonce, relay_id: relayId });
  const secret = createGroupSecret(random);
  const key = newMemberKey(core);
  const client_secret_commitment = clientSecretCommitment(network, group_id, secret);
  const { publicKey: member_encryption_public_key, privateKey } = key;
  const { name, description, invitePolicy: invite_policy = 'administrators' } = facts;
  const create = signAsDevice(
    network,
    {
      $type: network.type('group.create'),
      group_id,
      nonce,
      name,
      ...(description !== undefined && { description }),
      member_capacity,
      invite_policy,
      owner: { account, member_encryption_public_key },
      client_secret_commitment,
    },
    device,
  );
  checkInput('group', () => checkGroupBody(network, 'group.create', create));
  const context = { group_id, account, member_encryption_public_key, client_secret_commitment };
  const client_secret_box = sealClientSecret(network, context, { secret, random });
  const row: GroupRow = {
    ...emptyGroupRow({ group_id, relay_id: relayId }),
    standing: 'creating',
    creation: { create, client_secret_box },
  };
  await store.write(async (tx) => {
    await putGroup(tx, row);
    const id = { groupId: group_id, publicKey: member_encryption_public_key };
    await putMemberKey(tx, id, { privateKey, isOwn: true });
    const secretId = { groupId: group_id, commitment: client_secret_commitment };
    await putClientSecret(tx, secretId, encodeBase64url(secret));
  });
  await submitCreation(core, row, signal);
  await readGroupBuffered(core, group_id, signal);
  return group_id;
}

/**
 * Returns the host's limit of members. @throws ClientError `no_relay` if it does not host groups
 */
async function memberLimitOf(
  core: AccountCore,
  relayId: string,
  signal: AbortSignal,
): Promise<number> {
  const connection = core.relay(relayId);
  const { descriptor } = (await connection.authenticated(signal)).relay;
  const { limits } = await connection.call('relay.info', {}, { signal });
  const limit = limits.max_group_members;
  if (!descriptor.capabilities?.includes('group.host.v1') || limit === undefined) {
    throw new ClientError('no_relay', `${relayId} does not host groups: choose another relay`);
  }
  return limit;
}

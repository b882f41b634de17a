/** Founding a group, and becoming a member of one (05 §13.2, §13.13, §17.3). */
import {
  canonicalJson,
  checkGroupBody,
  checkGroupResolution,
  checkSchema,
  clientSecretCommitment,
  createGroupNonce,
  createGroupSecret,
  decodeBase64url,
  decodeUtf8,
  deriveGroupId,
  encodeBase64url,
  GroupId,
  GroupInviteId,
  type GroupInvitePolicy,
  type GroupState,
  type JsonObject,
  ProtocolError,
  parseJson,
  RelayId,
  type Static,
  sealClientSecret,
  signAsDevice,
  Type,
  utf8,
} from '@posthouse/protocol';
import type { AccountCore } from '../core.ts';
import { ClientError, isClientError, isRefusal, relayMust } from '../errors.ts';
import {
  type GroupRow,
  groupRow,
  groups,
  nothingYet,
  putClientSecret,
  putGroup,
  putMemberKey,
} from './rows.ts';
import { refreshGroup } from './sync.ts';

export interface NewGroup {
  readonly name: string;
  readonly description?: string | undefined;
  /** Members at the most; what the host permits at the most by default. */
  readonly capacity?: number | undefined;
  readonly invitePolicy?: GroupInvitePolicy | undefined;
  /** Host; the home relay by default. It never changes. */
  readonly relayId?: string | undefined;
}

/** A member key pair, base64url. */
export function newMemberKey(core: AccountCore): {
  readonly publicKey: string;
  readonly privateKey: string;
} {
  const privateKey = core.random(32);
  const publicKey = core.network.primitives.x25519.publicKey(privateKey);
  return { publicKey: encodeBase64url(publicKey), privateKey: encodeBase64url(privateKey) };
}

/**
 * Founds a group. Keys and creation are kept before anything leaves; an answer that is lost costs
 * nothing, the next synchronisation repeats the same creation.
 *
 * @returns its ID
 */
export async function foundGroup(
  core: AccountCore,
  facts: NewGroup,
  signal: AbortSignal,
): Promise<string> {
  const { network, account, device, random, store } = core;
  const relayId = facts.relayId ?? (await core.home()).relayId;
  const most = await hostLimit(core, relayId, signal);
  const member_capacity = facts.capacity ?? most;
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
  checkedInput(() => checkGroupBody(network, 'group.create', create));
  const context = { group_id, account, member_encryption_public_key, client_secret_commitment };
  const client_secret_box = sealClientSecret(network, context, { secret, random });
  const row: GroupRow = {
    ...nothingYet({ group_id, relay_id: relayId }),
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
  await refreshGroup(core, group_id, signal);
  return group_id;
}

/** Submits a creation, again unchanged where its fate is not known. */
export async function submitCreation(
  core: AccountCore,
  row: GroupRow,
  signal: AbortSignal,
): Promise<void> {
  if (row.creation === undefined) return;
  try {
    await core.relay(row.relay_id).call('group.create', row.creation, { signal });
  } catch (error) {
    // The ID is taken: by this very creation, as reading it shows.
    if (isRefusal(error, 'state_conflict')) return;
    const isFinal = isRefusal(error, 'bad_request', 'forbidden', 'invalid_signature');
    if (isFinal) await core.store.write((tx) => putGroup(tx, abandoned(row)));
    throw error;
  }
}

function abandoned({ creation: _refused, ...row }: GroupRow): GroupRow {
  return { ...row, standing: 'ended' };
}

/** @throws ClientError `no_relay` where the relay does not declare that it hosts groups */
async function hostLimit(core: AccountCore, relayId: string, signal: AbortSignal): Promise<number> {
  const connection = core.relay(relayId);
  const { descriptor } = (await connection.link(signal)).relay;
  const { limits } = await connection.call('relay.info', {}, { signal });
  const most = limits.max_group_members;
  if (!descriptor.capabilities?.includes('group.host.v1') || most === undefined) {
    throw new ClientError('no_relay', `${relayId} hosts no groups`);
  }
  return most;
}

/** Where an invitation leads: what somebody needs to find the group and to apply. */
const InviteAddress = Type.Object({
  relay_id: RelayId,
  group_id: GroupId,
  invite_id: GroupInviteId,
});
export type InviteAddress = Static<typeof InviteAddress>;

/**
 * An invitation's address as one word of text, for links and QR codes. Nothing in it is secret but
 * the ID of a public invitation, and nothing in it is believed: the group's ID is bound to host
 * and creator, and the host judges the invitation.
 */
export function encodeInviteAddress(core: AccountCore, address: InviteAddress): string {
  const { relay_id, group_id, invite_id } = address;
  const bytes = utf8(canonicalJson({ relay_id, group_id, invite_id }));
  return `${addressPrefix(core)}${encodeBase64url(bytes)}`;
}

/** @throws ClientError `verification_failed` */
export function decodeInviteAddress(core: AccountCore, text: string): InviteAddress {
  const prefix = addressPrefix(core);
  const word = text.trim();
  const bytes = word.startsWith(prefix) ? decodeBase64url(word.slice(prefix.length)) : undefined;
  try {
    if (bytes === undefined) throw new TypeError(`expected ${prefix}`);
    const address: unknown = parseJson(decodeUtf8(bytes));
    checkSchema(InviteAddress, address, 'invitation');
    return address;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : 'invalid';
    throw new ClientError('verification_failed', `invitation: ${reason}`, { cause });
  }
}

function addressPrefix({ network }: AccountCore): string {
  return `${network.word}-group:`;
}

/**
 * What the host says of a group, for display alone (05 §13.3): nothing of it is verified.
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function previewGroup(
  core: AccountCore,
  address: InviteAddress,
  signal: AbortSignal,
): Promise<GroupState> {
  const { relay_id, group_id, invite_id } = address;
  const method = 'group.resolve';
  const params = { group_id, invite_id };
  const answer = await core.relay(relay_id).call(method, params, { signal });
  relayMust('invalid_group_state', method, () =>
    checkGroupResolution(core.network, answer, params),
  );
  return answer;
}

/** Notes a group and its host; whether the account is a member, reading it shows. */
export async function knowGroup(
  core: AccountCore,
  { groupId, relayId }: { readonly groupId: string; readonly relayId: string },
): Promise<void> {
  await core.store.write(async (tx) => {
    const known = await groupRow(tx, groupId);
    const fresh = nothingYet({ group_id: groupId, relay_id: relayId });
    if (known === undefined) await putGroup(tx, { ...fresh, standing: 'known' });
    else if (known.standing === 'ended') {
      const { isForgotten: _again, ...row } = known;
      await putGroup(tx, { ...row, standing: 'known' });
    }
  });
}

/** @throws ClientError `invalid_input` for a group the account is a member of */
export async function forgetGroup(core: AccountCore, groupId: string): Promise<void> {
  await core.store.write(async (tx) => {
    const row = await groupRow(tx, groupId);
    if (row === undefined) return;
    if (row.standing === 'member' || row.standing === 'creating') {
      throw new ClientError('invalid_input', 'a member leaves before the group is forgotten');
    }
    const { application: _withdrawn, ...rest } = row;
    await putGroup(tx, { ...rest, standing: 'ended', isForgotten: true });
  });
}

/**
 * Applies for admission with a new member key, kept before the application leaves. The group is
 * read as soon as its host permits it; only then is the key taken into use (05 §17.3).
 *
 * @throws ClientError `invalid_input` for a group the account is a member of
 */
export async function applyToGroup(
  core: AccountCore,
  address: InviteAddress,
  signal: AbortSignal,
): Promise<void> {
  const { network, account, device, store } = core;
  const { relay_id, group_id, invite_id } = address;
  const { publicKey: member_encryption_public_key, privateKey } = newMemberKey(core);
  const unsigned: JsonObject = {
    $type: network.type('group.application'),
    account,
    group_id,
    invite_id,
    member_encryption_public_key,
  };
  const application = signAsDevice(network, unsigned, device) as Required<GroupRow>['application'];
  const before = await store.write(async (tx) => {
    const known = await groupRow(tx, group_id);
    if (known?.standing === 'member' || known?.standing === 'creating') {
      throw new ClientError('invalid_input', `the account is a member of ${group_id} already`);
    }
    // Verified state is bound to its host by the group's ID; anything else may be a wrong address.
    const fresh: GroupRow = { ...nothingYet({ group_id, relay_id }), standing: 'applied' };
    const { isForgotten: _again, ...row } = known?.facts === undefined ? fresh : known;
    await putGroup(tx, { ...row, standing: 'applied', application });
    const id = { groupId: group_id, publicKey: member_encryption_public_key };
    await putMemberKey(tx, id, { privateKey, isOwn: true });
    return known;
  });
  try {
    await submitApplication(core, { group_id, relay_id, application }, signal);
  } catch (error) {
    // Refused for good: the group is what it was to this device.
    const isFinal =
      isRefusal(error, 'forbidden', 'not_found', 'bad_request', 'state_conflict') ||
      isClientError(error, 'no_relay');
    if (isFinal) {
      await store.write((tx) =>
        before === undefined ? groups.delete(tx, group_id) : putGroup(tx, before),
      );
    }
    throw error;
  }
}

/** Submits an application, again unchanged where its answer was lost. */
export async function submitApplication(
  core: AccountCore,
  row: Pick<GroupRow, 'group_id' | 'relay_id' | 'application'>,
  signal: AbortSignal,
): Promise<void> {
  if (row.application === undefined) return;
  const method = 'group.application.submit';
  await core.relay(row.relay_id).call(method, row.application, { signal });
  await core.store.write(async (tx) => {
    const latest = await groupRow(tx, row.group_id);
    if (latest === undefined) return;
    const { application: _submitted, ...rest } = latest;
    await putGroup(tx, rest);
  });
}

/** What a person asked for and the rules do not allow. */
function checkedInput(check: () => void): void {
  try {
    check();
  } catch (cause) {
    if (!(cause instanceof ProtocolError)) throw cause;
    throw new ClientError('invalid_input', `group: ${cause.message}`, { cause });
  }
}

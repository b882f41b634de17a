/** Objects by which the devices of one account share their group state (03 §19). */
import { badRequest } from '../errors.ts';
import { GroupId } from '../groups/ids.ts';
import type { Network } from '../identity/index.ts';
import {
  Base64url,
  Counter,
  checkNoNull,
  checkObject,
  checkPart,
  RelayId,
  type Static,
  Type,
  TypeName,
} from '../schema.ts';

/** Asks the account's other devices for their private state of one group, or of all. */
export const AccountGroupPrivateStateRequest = Type.Object({
  $type: TypeName,
  group_id: Type.Optional(GroupId),
});
export type AccountGroupPrivateStateRequest = Static<typeof AccountGroupPrivateStateRequest>;

/** The account's member key of one group. */
export const GroupMemberPrivateState = Type.Object({
  group_id: GroupId,
  /** Hosting relay. */
  relay_id: RelayId,
  /** X25519, base64url. */
  member_encryption_private_key: Base64url(32),
});
export type GroupMemberPrivateState = Static<typeof GroupMemberPrivateState>;

export const AccountGroupPrivateStateSync = Type.Object({
  $type: TypeName,
  states: Type.Array(GroupMemberPrivateState, { minItems: 1 }),
});
export type AccountGroupPrivateStateSync = Static<typeof AccountGroupPrivateStateSync>;

/** The secret of one epoch of one group. */
export const GroupHistorySecret = Type.Object({
  group_id: GroupId,
  epoch: Counter,
  application_secret: Base64url(32),
});
export type GroupHistorySecret = Static<typeof GroupHistorySecret>;

export const AccountGroupHistorySecretSync = Type.Object({
  $type: TypeName,
  secrets: Type.Array(GroupHistorySecret, { minItems: 1 }),
});
export type AccountGroupHistorySecretSync = Static<typeof AccountGroupHistorySecretSync>;

/**
 * Checks a request for the account's private state of groups (03 §19).
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkGroupStateRequest(network, value);
 * console.log(value.group_id);
 */
export function checkGroupStateRequest(
  network: Network,
  value: unknown,
  path = '',
): asserts value is AccountGroupPrivateStateRequest {
  const schema = AccountGroupPrivateStateRequest;
  checkObject(network, { type: 'account.group.state.request', schema }, value, path);
  checkNoNull(value, path);
}

/**
 * Checks member keys of groups: at least one, no group twice. Whether a key is the account's
 * present one shows only against verified membership.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkGroupStateSync(network, value);
 * for (const state of value.states) console.log(state.group_id);
 */
export function checkGroupStateSync(
  network: Network,
  value: unknown,
  path = '',
): asserts value is AccountGroupPrivateStateSync {
  const schema = AccountGroupPrivateStateSync;
  checkObject(network, { type: 'account.group.state.sync', schema }, value, path);
  checkNoNull(value, path);
  for (const [index, state] of value.states.entries()) checkPart(state, `states.${index}`);
  const groups = new Set(value.states.map((state) => state.group_id));
  if (groups.size < value.states.length) throw badRequest(path, 'repeats a group');
}

/**
 * Checks secrets of group epochs: at least one, no epoch of a group twice. They are staged until
 * verified history confirms the epoch.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkGroupHistorySecretSync(network, value);
 * for (const secret of value.secrets) console.log(secret.group_id, secret.epoch);
 */
export function checkGroupHistorySecretSync(
  network: Network,
  value: unknown,
  path = '',
): asserts value is AccountGroupHistorySecretSync {
  const schema = AccountGroupHistorySecretSync;
  checkObject(network, { type: 'account.group.history_secret.sync', schema }, value, path);
  checkNoNull(value, path);
  for (const [index, secret] of value.secrets.entries()) checkPart(secret, `secrets.${index}`);
  const epochs = new Set(value.secrets.map((secret) => `${secret.group_id} ${secret.epoch}`));
  if (epochs.size < value.secrets.length) throw badRequest(path, 'repeats an epoch of a group');
}

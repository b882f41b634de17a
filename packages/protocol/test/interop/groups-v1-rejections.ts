/** The mutations that `rejection_cases` describes in words, by name. */
import {
  advanceGroup,
  checkGroupSyncPage,
  currentMember,
  type ErrorCode,
  encodeBase64url,
  type GroupEvent,
  groupRecordSignatures,
  Network,
  verifyDeviceCertificate,
  verifyGroupApplication,
  verifyGroupMemberRecoveryRequest,
  verifyGroupSyncPage,
} from '../../src/index.ts';
import type { JsonObject } from '../../src/json/index.ts';
import { type Chain, codeOf, copy } from './groups-v1-chain-state.ts';

interface Rejection {
  readonly code: ErrorCode;
  /** The codes of every refusal that the case asks for. */
  readonly run: (chain: Chain) => ErrorCode | ErrorCode[];
}

const zeroSignature = encodeBase64url(new Uint8Array(64));

const event = (chain: Chain, index: number) => copy(chain.data.chain[index]?.event) as GroupEvent;

const request = (chain: Chain, label: string) => {
  const item = chain.data.member_requests.find((each) => each.label === label);
  return copy(item?.request) as JsonObject & { device_signature: string; account: string };
};

const accountOf = (chain: Chain, label: string) => chain.player(label).account;

/** The body of `$type` `group.<name>`. */
const body = (chain: Chain, name: string, members: JsonObject) => ({
  $type: chain.network.type(`group.${name}`),
  ...members,
});

/** A member signs a batch against accounts after `chain[index]`. */
const batch =
  (name: string, by: string, after: number, targets: string[], epoch?: number) =>
  (chain: Chain): ErrorCode => {
    const group = chain.after(after);
    const accounts = targets.map((label) => accountOf(chain, label));
    const options = { epoch: epoch ?? group.epoch + 1 };
    return chain.refuse(group, chain.event(group, by, body(chain, name, { accounts }), options));
  };

const approve = (chain: Chain, by: string, after: number, label: string): ErrorCode => {
  const group = chain.after(after);
  const { account, key } = chain.player(label);
  const members = [{ account, member_encryption_public_key: key }];
  const approval = body(chain, 'application.approval', { members });
  return chain.refuse(group, chain.event(group, by, approval, { epoch: group.epoch + 1 }));
};

/** `B_application` under another network. */
const inNetwork = (chain: Chain, context: string): ErrorCode => {
  const { word, primitives } = chain.network;
  const network = new Network({ context, word, primitives });
  const { certificate } = chain.player('B');
  return codeOf(() =>
    verifyGroupApplication(network, request(chain, 'B_application'), certificate),
  );
};

const certificateOfB = (chain: Chain, change: JsonObject): ErrorCode => {
  const certificate = { ...copy(chain.player('B').certificate), ...change };
  return codeOf(() => verifyDeviceCertificate(chain.network, certificate));
};

/** A case of another section, applied once and then again unchanged. */
const repeatSameValue =
  (name: string) =>
  (chain: Chain): ErrorCode => {
    const { starting_event_index, cases } = chain.data.same_value_updates;
    const item = cases.find((each) => each.name === name);
    const once = copy(item?.event) as GroupEvent;
    const group = chain.apply(chain.after(starting_event_index), once);
    return chain.refuse(group, { ...once, sequence: once.sequence + 1 });
  };

const stepsOfBan = (chain: Chain, name: string) => {
  const { starting_event_index, cases } = chain.data.ban_transitions;
  const steps = cases.find((each) => each.name === name)?.steps ?? [];
  return {
    start: chain.after(starting_event_index),
    events: steps.map((each) => copy(each.event)),
  };
};

const banOfAdministrator = 'owner_bans_administrator_then_unbans';

/** Events of the chain in another order, as a page; the code at which it is blocked. */
const replay = (chain: Chain, indexes: number[]): ErrorCode | undefined => {
  const events = indexes.map((index, position) => ({ ...event(chain, index), sequence: position }));
  const page = { events, signers: chain.signers, has_more: false };
  return advanceGroup(chain.network, chain.anchor, page).blocked?.error.code;
};

export const rejections: Readonly<Record<string, Rejection>> = {
  member_public_key_tampering: {
    code: 'invalid_signature',
    run: (chain) => {
      const changed = { member_encryption_public_key: chain.player('C').key };
      const object = { ...request(chain, 'B_application'), ...changed };
      const { certificate } = chain.player('B');
      return codeOf(() => verifyGroupApplication(chain.network, object, certificate));
    },
  },
  recovery_public_key_tampering: {
    code: 'invalid_signature',
    run: (chain) => {
      const changed = { member_encryption_public_key: chain.player('A').key };
      const object = { ...request(chain, 'C_recovery'), ...changed };
      const { certificate } = chain.player('C');
      return codeOf(() => verifyGroupMemberRecoveryRequest(chain.network, object, certificate));
    },
  },
  wrong_request_account: {
    code: 'bad_request',
    run: (chain) => {
      const record = request(chain, 'B_application');
      const { certificate } = chain.player('B');
      const signed = { record, account: accountOf(chain, 'C'), certificate };
      return codeOf(() => groupRecordSignatures(chain.network, signed));
    },
  },
  wrong_group: {
    code: 'invalid_signature',
    run: (chain) => {
      const object = { ...request(chain, 'B_application'), group_id: 'grp_omoOs3VZ9io_Z1h4RtztSA' };
      const { certificate } = chain.player('B');
      return codeOf(() => verifyGroupApplication(chain.network, object, certificate));
    },
  },
  wrong_network: {
    // The accounts name the magic, so structure already tells.
    code: 'bad_request',
    run: (chain) => {
      const { magic, registry } = chain.network;
      return inNetwork(chain, `neo:${Number(magic) + 1}:${registry}`);
    },
  },
  wrong_registry: {
    code: 'invalid_signature',
    run: (chain) => inNetwork(chain, `neo:${chain.network.magic}:0x${'0'.repeat(40)}`),
  },
  forged_account_certificate: {
    code: 'invalid_signature',
    run: (chain) => certificateOfB(chain, { account_signature: zeroSignature }),
  },
  replaced_device_signing_key: {
    code: 'invalid_signature',
    run: (chain) => {
      const { signing_public_key } = chain.player('C').certificate;
      return certificateOfB(chain, { signing_public_key });
    },
  },
  modified_certificate_account: {
    code: 'bad_request',
    run: (chain) => certificateOfB(chain, { account: accountOf(chain, 'C') }),
  },
  modified_prev_hash: {
    code: 'invalid_signature',
    run: (chain) => {
      const changed = event(chain, 2);
      Object.assign(changed.payload, { prev_hash: chain.data.chain[0]?.management_hash });
      return chain.refuse(chain.after(1), changed);
    },
  },
  resigned_wrong_previous_hash: {
    code: 'state_conflict',
    run: (chain) => {
      const prev_hash = chain.data.chain[0]?.management_hash;
      return chain.refuse(chain.after(1), chain.resigned(event(chain, 2), 'A', { prev_hash }));
    },
  },
  unexpected_creation_prev_hash: {
    code: 'bad_request',
    run: (chain) => {
      const creation = chain.resigned(event(chain, 0), 'A', { prev_hash: null });
      const other = chain.resigned(event(chain, 0), 'A', { prev_hash: chain.after(0).head });
      return [creation, other].map((each) => codeOf(() => chain.apply(undefined, each)));
    },
  },
  creation_after_initialization: {
    code: 'state_conflict',
    run: (chain) => chain.refuse(chain.after(0), { ...event(chain, 0), sequence: 1 }),
  },
  deleted_management_event: {
    // B is no administrator without the event that is missing.
    code: 'forbidden',
    run: (chain) => replay(chain, [0, 1, 3]) ?? [],
  },
  reordered_management_events: {
    code: 'state_conflict',
    run: (chain) => replay(chain, [0, 2, 1]) ?? [],
  },
  duplicate_management_event: {
    code: 'state_conflict',
    run: (chain) => replay(chain, [0, 1, 1]) ?? [],
  },
  member_forges_admin_result: { code: 'forbidden', run: (chain) => approve(chain, 'B', 1, 'C') },
  banned_admin: { code: 'forbidden', run: batch('member.removal', 'B', 6, ['C']) },
  former_owner: {
    code: 'forbidden',
    run: (chain) => {
      const group = chain.after(12);
      const update = body(chain, 'update', { name: 'Mine again' });
      return chain.refuse(group, chain.event(group, 'A', update));
    },
  },
  admin_removes_owner: { code: 'forbidden', run: batch('member.removal', 'B', 2, ['A']) },
  unknown_management_type: {
    code: 'invalid_state',
    run: (chain) => {
      const group = chain.after(2);
      return chain.refuse(group, chain.event(group, 'A', body(chain, 'future_update', {})));
    },
  },
  extension_tampering: {
    code: 'invalid_signature',
    run: (chain) => {
      const changed = event(chain, 9);
      Object.assign(changed.payload, { future_data: { note: 'changed', values: [0, 1] } });
      return chain.refuse(chain.after(8), changed);
    },
  },
  wrong_actor_device: {
    code: 'invalid_signature',
    run: (chain) => {
      const signer_device_id = chain.player('B').deviceId;
      return chain.refuse(chain.after(0), { ...event(chain, 1), signer_device_id });
    },
  },
  concurrent_stale_head: {
    code: 'state_conflict',
    run: (chain) => {
      const { first, conflicting } = chain.data.concurrency;
      return chain.refuse(chain.apply(chain.after(2), first), conflicting);
    },
  },
  repeated_same_value_group_update: {
    code: 'state_conflict',
    run: repeatSameValue('group_update'),
  },
  repeated_same_value_role_update: { code: 'state_conflict', run: repeatSameValue('role_update') },
  repeated_same_value_unknown_attributes: {
    code: 'state_conflict',
    run: repeatSameValue('unknown_attributes'),
  },
  stale_same_value_update: {
    code: 'state_conflict',
    run: (chain) => {
      const group = chain.after(2);
      const update = body(chain, 'update', { name: group.name });
      const { head } = chain.after(1);
      return chain.refuse(group, chain.event(group, 'A', update, { head }));
    },
  },
  stale_same_value_role: {
    code: 'state_conflict',
    run: (chain) => {
      const group = chain.after(2);
      const members = { account: accountOf(chain, 'B'), role: 'administrator' };
      const { head } = chain.after(1);
      const update = body(chain, 'role.update', members);
      return chain.refuse(group, chain.event(group, 'A', update, { head }));
    },
  },
  concurrent_same_value_updates: {
    code: 'state_conflict',
    run: (chain) => {
      const { cases, starting_event_index } = chain.data.same_value_updates;
      const named = (name: string) =>
        copy(cases.find((each) => each.name === name)?.event) as GroupEvent;
      const group = chain.apply(chain.after(starting_event_index), named('group_update'));
      const other = named('role_update');
      return chain.refuse(group, { ...other, sequence: other.sequence + 1 });
    },
  },
  group_update_without_modifiable_fields: {
    code: 'bad_request',
    run: (chain) => {
      const group = chain.after(2);
      const update = body(chain, 'update', { future_data: 1, owner_account: 'x' });
      return chain.refuse(group, chain.event(group, 'A', update));
    },
  },
  banned_account_readmission: {
    code: 'state_conflict',
    run: (chain) => approve(chain, 'A', 6, 'B'),
  },
  unbanned_account_is_not_member: {
    code: 'forbidden',
    run: batch('member.removal', 'B', 7, ['C']),
  },
  rejoined_account_is_not_administrator: {
    code: 'forbidden',
    run: batch('member.removal', 'B', 8, ['C']),
  },
  administrator_bans_owner: { code: 'forbidden', run: batch('member.ban', 'B', 2, ['A']) },
  administrator_bans_self: { code: 'forbidden', run: batch('member.ban', 'B', 2, ['B']) },
  administrator_bans_administrator: {
    code: 'forbidden',
    run: (chain) => {
      const before = chain.after(3);
      const members = { account: accountOf(chain, 'C'), role: 'administrator' };
      const promotion = chain.event(before, 'A', body(chain, 'role.update', members));
      const group = chain.apply(before, promotion);
      const ban = body(chain, 'member.ban', { accounts: [accountOf(chain, 'C')] });
      return chain.refuse(group, chain.event(group, 'B', ban, { epoch: group.epoch + 1 }));
    },
  },
  ban_empty_accounts: { code: 'bad_request', run: batch('member.ban', 'A', 2, []) },
  ban_duplicate_accounts: { code: 'bad_request', run: batch('member.ban', 'A', 2, ['B', 'B']) },
  ban_batch_contains_owner: { code: 'forbidden', run: batch('member.ban', 'A', 2, ['B', 'A']) },
  ban_member_without_new_epoch: {
    code: 'bad_request',
    run: (chain) => {
      const { start, events } = stepsOfBan(chain, banOfAdministrator);
      return chain.refuse(start, { ...(events[0] as GroupEvent), epoch: start.epoch });
    },
  },
  ban_nonmember_advances_epoch: {
    code: 'bad_request',
    run: (chain) => {
      const { start, events } = stepsOfBan(chain, 'nonmember_repeated_ban_and_unban');
      return chain.refuse(start, { ...(events[0] as GroupEvent), epoch: start.epoch + 1 });
    },
  },
  unban_advances_epoch: {
    code: 'bad_request',
    run: (chain) => {
      const { start, events } = stepsOfBan(chain, banOfAdministrator);
      const group = chain.apply(start, events[0] as GroupEvent);
      return chain.refuse(group, { ...(events[1] as GroupEvent), epoch: group.epoch + 1 });
    },
  },
  repeated_ban_old_head: {
    code: 'state_conflict',
    run: (chain) => {
      const { start, events } = stepsOfBan(chain, banOfAdministrator);
      const ban = events[0] as GroupEvent;
      const group = chain.apply(start, ban);
      const again = { ...ban, sequence: group.sequence + 1, epoch: group.epoch + 1 };
      return chain.refuse(group, again);
    },
  },
  no_current_read_permission: {
    // The current validity of the device is the relay's session to judge.
    code: 'forbidden',
    run: (chain) => [
      codeOf(() => currentMember(chain.after(6), accountOf(chain, 'B'))),
      codeOf(() => currentMember(chain.after(13), accountOf(chain, 'A'))),
    ],
  },
  missing_signer_certificate: {
    code: 'bad_request',
    run: (chain) => {
      const certificates = [chain.player('A').certificate];
      const page = { ...chain.data.sync_response, certificates };
      return codeOf(() => checkGroupSyncPage(chain.network, page, {}));
    },
  },
  duplicate_signer_certificate: {
    code: 'bad_request',
    run: (chain) => {
      const certificates = ['A', 'B', 'A'].map((label) => chain.player(label).certificate);
      const page = { ...chain.data.sync_response, certificates };
      return codeOf(() => verifyGroupSyncPage(chain.network, page, {}));
    },
  },
  leave_account_certificate_mismatch: {
    code: 'forbidden',
    run: (chain) => {
      const { cases, event_index } = chain.data.signer_account_binding;
      const other = cases.find((each) => each.name === 'different_account');
      const signer_device_id = other?.signer_device_id ?? '';
      return chain.refuse(chain.after(event_index - 1), {
        ...event(chain, event_index),
        signer_device_id,
      });
    },
  },
  leave_account_tampering: {
    code: 'invalid_signature',
    run: (chain) => {
      const changed = event(chain, 13);
      Object.assign(changed.payload, { account: accountOf(chain, 'C') });
      return chain.refuse(chain.after(12), changed);
    },
  },
  leave_missing_account: {
    code: 'bad_request',
    run: (chain) => {
      const group = chain.after(12);
      const leave = chain.event(group, 'A', body(chain, 'member.leave', {}), {
        epoch: group.epoch + 1,
      });
      return chain.refuse(group, leave);
    },
  },
  former_transfer_after_ownership_returns: {
    code: 'state_conflict',
    run: (chain) => {
      const { starting_event_index, steps, replay_event } = chain.data.ownership_round_trip;
      let group = chain.after(starting_event_index);
      for (const step of steps) group = chain.apply(group, step.event);
      return chain.refuse(group, { ...copy(replay_event), sequence: group.sequence + 1 });
    },
  },
};

/** Mutations that the state of the group rejects: stale heads, same values, bans and who left. */
import {
  checkGroupSyncPage,
  currentMember,
  type GroupEvent,
  verifyGroupSyncPage,
} from '../../src/index.ts';
import { codeOf, copy } from './groups-v1-chain-state.ts';
import {
  accountOf,
  approve,
  banOfAdministrator,
  batch,
  body,
  event,
  type Rejection,
  repeatSameValue,
  stepsOfBan,
} from './groups-v1-mutations.ts';

export const stateRejections: Readonly<Record<string, Rejection>> = {
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

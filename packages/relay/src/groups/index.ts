import type { HandlersOf } from '../dispatch/handler.ts';
import type { StoredModule } from '../dispatch/module.ts';
import { groupApplicationApprove } from './methods/group.application.approve.ts';
import { groupApplicationList } from './methods/group.application.list.ts';
import { groupApplicationReject } from './methods/group.application.reject.ts';
import { groupApplicationSubmit } from './methods/group.application.submit.ts';
import { groupClose } from './methods/group.close.ts';
import { groupCreate } from './methods/group.create.ts';
import { groupInviteCreate } from './methods/group.invite.create.ts';
import { groupInviteList } from './methods/group.invite.list.ts';
import { groupInviteResolve } from './methods/group.invite.resolve.ts';
import { groupInviteRevoke } from './methods/group.invite.revoke.ts';
import { groupKeySync } from './methods/group.key.sync.ts';
import { groupMemberBan } from './methods/group.member.ban.ts';
import { groupMemberLeave } from './methods/group.member.leave.ts';
import { groupMemberRecoveryApprove } from './methods/group.member.recovery.approve.ts';
import { groupMemberRecoveryList } from './methods/group.member.recovery.list.ts';
import { groupMemberRecoveryReject } from './methods/group.member.recovery.reject.ts';
import { groupMemberRecoverySubmit } from './methods/group.member.recovery.submit.ts';
import { groupMemberRemove } from './methods/group.member.remove.ts';
import { groupMemberUnban } from './methods/group.member.unban.ts';
import { groupMessageSend } from './methods/group.message.send.ts';
import { groupOwnerTransfer } from './methods/group.owner.transfer.ts';
import { groupResolve } from './methods/group.resolve.ts';
import { groupRoleUpdate } from './methods/group.role.update.ts';
import { groupSecretRotationCommit } from './methods/group.secret.rotation.commit.ts';
import { groupSecretRotationPrepare } from './methods/group.secret.rotation.prepare.ts';
import { groupSubscribe } from './methods/group.subscribe.ts';
import { groupSync } from './methods/group.sync.ts';
import { groupUpdate } from './methods/group.update.ts';
import { migrations } from './migrations.ts';
import { groupResync } from './reading/resync.ts';
import { restored } from './restored.ts';
import { expiryJob } from './upkeep/expiry-job.ts';
import { inactivityJob } from './upkeep/inactive-devices.ts';
import { retentionJob } from './upkeep/retention-job.ts';

export { type GroupReaders, readGroupReaders } from './reading/subscription-store.ts';

export const groups: StoredModule = {
  name: 'groups',
  capability: 'group.host.v1',
  migrations,
  restored,
  handlers: {
    'group.create': groupCreate,
    'group.resolve': groupResolve,
    'group.sync': groupSync,
    'group.close': groupClose,
    'group.update': groupUpdate,
    'group.role.update': groupRoleUpdate,
    'group.owner.transfer': groupOwnerTransfer,
    'group.invite.create': groupInviteCreate,
    'group.invite.resolve': groupInviteResolve,
    'group.invite.list': groupInviteList,
    'group.invite.revoke': groupInviteRevoke,
    'group.application.submit': groupApplicationSubmit,
    'group.application.list': groupApplicationList,
    'group.application.approve': groupApplicationApprove,
    'group.application.reject': groupApplicationReject,
    'group.member.leave': groupMemberLeave,
    'group.member.remove': groupMemberRemove,
    'group.member.ban': groupMemberBan,
    'group.member.unban': groupMemberUnban,
    'group.member.recovery.submit': groupMemberRecoverySubmit,
    'group.member.recovery.list': groupMemberRecoveryList,
    'group.member.recovery.approve': groupMemberRecoveryApprove,
    'group.member.recovery.reject': groupMemberRecoveryReject,
    'group.key.sync': groupKeySync,
    'group.secret.rotation.prepare': groupSecretRotationPrepare,
    'group.secret.rotation.commit': groupSecretRotationCommit,
    'group.message.send': groupMessageSend,
    'group.subscribe': groupSubscribe,
  } satisfies HandlersOf<'group'>,
  jobs: [expiryJob, retentionJob, inactivityJob],
  subscriptionResync: groupResync,
};

import { checkGroupOpen, checkGroupParams } from '@posthouse/protocol';
import { writeAdmitted } from '../../accounts/index.ts';
import type { Handler } from '../../dispatch/handler.ts';
import { applicationsNotice } from '../chain/notices.ts';
import { requireManager } from '../chain/require-member.ts';
import { deleteApplications, isCurrent, readApplications } from '../requests/application-store.ts';
import { noRequest } from '../requests/approvals.ts';

/** `group.application.reject` (05 §13.16). */
export const groupApplicationReject: Handler<'group.application.reject'> = async (
  context,
  call,
) => {
  const session = call.session;
  checkGroupParams(context.network, 'group.application.reject', call.params);
  const { group_id: groupId, accounts } = call.params;
  return await writeAdmitted(context, {
    ...{ session, aggregates: `group:${groupId}` },
    admit: (tx, { now }) => requireManager(tx, session, { groupId, now }),
    work: async (tx, { group }, now) => {
      checkGroupOpen(group.stored);
      const applications = await readApplications(tx, groupId, accounts);
      for (const account of accounts) {
        const application = applications.get(account);
        if (application === undefined || !isCurrent(application, now)) throw noRequest();
      }
      await deleteApplications(tx, groupId, accounts);
      return { result: null, notices: [await applicationsNotice(tx, groupId)] };
    },
  });
};

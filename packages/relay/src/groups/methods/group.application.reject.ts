import { checkGroupOpen, checkGroupParams, type GroupParams } from '@posthouse/protocol';
import type { DeviceSession, Handler } from '../../call.ts';
import { deleteApplications, isCurrent, readApplications } from '../application-store.ts';
import { noRequest } from '../arrivals.ts';
import { requireManager } from '../caller.ts';
import { applicationsNotice } from '../notices.ts';

/** `group.application.reject` (05 §13.16). */
export const groupApplicationReject: Handler<GroupParams<'group.application.reject'>> = async (
  context,
  call,
) => {
  const { clock, network, storage } = context;
  const session = call.session as DeviceSession;
  checkGroupParams(network, 'group.application.reject', call.params);
  const { group_id: groupId, accounts } = call.params;
  return await storage.write(`group:${groupId}`, async (tx) => {
    const now = clock.now();
    const { group } = await requireManager(tx, session, { groupId, now });
    checkGroupOpen(group.stored);
    const applications = await readApplications(tx, groupId, accounts);
    for (const account of accounts) {
      const application = applications.get(account);
      if (application === undefined || !isCurrent(application, now)) throw noRequest();
    }
    await deleteApplications(tx, groupId, accounts);
    return { result: null, notices: [await applicationsNotice(tx, groupId)] };
  });
};

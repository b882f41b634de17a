/** Reading a group's lists of invitations, applications and recoveries completely (05 §12.7). */
import type { GroupMethodName, Network } from '@posthouse/protocol';
import type { AccountCore } from '../../core.ts';
import {
  checkRelayAnswer,
  isRefusal,
  type MisbehaviourReason,
  RelayMisbehaviour,
} from '../../errors.ts';
import { ReadBudget } from '../../sync/budget.ts';
import { requireGroupRow } from '../timeline/read-group.ts';

type ListMethod = Extract<
  GroupMethodName,
  'group.invite.list' | 'group.application.list' | 'group.member.recovery.list'
>;

/** One list: its method, and what its pages hold. */
export interface GroupList<P, E> {
  readonly method: ListMethod;
  /** Verifies a page. @throws ProtocolError */
  verify(network: Network, page: unknown, request: { group_id: string; limit: number }): P;
  entriesOf(page: P): readonly E[];
  /** The signature of an entry's record, by which a repeated record is recognized. */
  signatureOf(entry: E): string;
}

interface ListRequest {
  readonly groupId: string;
  readonly signal: AbortSignal;
}

const pageSize = 100;
const reason: MisbehaviourReason = 'invalid_group_record';

/**
 * Reads a list, each page verified, up to the read budget: a host can invent accounts that apply
 * without end. If the host lost the cursor, the list is read from its start once more.
 *
 * @throws ClientError `not_a_member`, `group_blocked`
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function readGroupList<P extends { readonly next?: string }, E>(
  core: AccountCore,
  list: GroupList<P, E>,
  request: ListRequest,
): Promise<E[]> {
  const { relay_id: relayId } = await requireGroupRow(core, request.groupId);
  try {
    return await readFromStart(core, list, { ...request, relayId });
  } catch (error) {
    if (!isRefusal(error, 'not_found')) throw error;
    return await readFromStart(core, list, { ...request, relayId });
  }
}

async function readFromStart<P extends { readonly next?: string }, E>(
  core: AccountCore,
  { method, verify, entriesOf, signatureOf }: GroupList<P, E>,
  { relayId, groupId, signal }: ListRequest & { readonly relayId: string },
): Promise<E[]> {
  const entries: E[] = [];
  const seen = new Set<string>();
  const budget = new ReadBudget(core.reading);
  let cursor: string | undefined;
  do {
    const request = { group_id: groupId, limit: pageSize };
    const params = { ...request, ...(cursor !== undefined && { cursor }) };
    const answer = await core.relay(relayId).call(method, params, { signal });
    const page = checkRelayAnswer(reason, method, () => verify(core.network, answer, request));
    const found = entriesOf(page);
    entries.push(...found);
    cursor = page.next;
    // A host that repeats records could return pages for ever.
    const signatures = found.map(signatureOf);
    if (cursor !== undefined && signatures.every((each) => seen.has(each))) {
      throw new RelayMisbehaviour(reason, 'the same records again', { method });
    }
    for (const each of signatures) seen.add(each);
    budget.spendPage(found.length);
  } while (cursor !== undefined && !budget.isSpent);
  return entries;
}

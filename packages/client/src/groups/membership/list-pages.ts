/** Reading the lists of a group from their beginning to their end (05 §12.7). */
import type { GroupMethodName } from '@posthouse/protocol';
import type { AccountCore } from '../../core.ts';
import {
  checkRelayAnswer,
  isRefusal,
  type MisbehaviourReason,
  RelayMisbehaviour,
} from '../../errors.ts';
import { ReadBudget } from '../../sync/budget.ts';

type ListMethod = Extract<
  GroupMethodName,
  'group.invite.list' | 'group.application.list' | 'group.member.recovery.list'
>;

interface ListRequest<P> {
  readonly relayId: string;
  readonly method: ListMethod;
  readonly groupId: string;
  readonly signal: AbortSignal;
  /** Verifies a page. @throws ProtocolError */
  readonly verify: (page: unknown, request: { group_id: string; limit: number }) => P;
  /** The signatures of a page's records: what makes one a record not seen before. */
  readonly signatures: (page: P) => readonly string[];
}

const pageSize = 100;
const reason: MisbehaviourReason = 'invalid_group_record';

/**
 * The pages of a list, each verified, as far as a list is read in one go: a host can make up
 * accounts that apply without end. Where it has lost the place, the list is read from its beginning
 * once more.
 *
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function readListPages<P extends { readonly next?: string }>(
  core: AccountCore,
  listing: ListRequest<P>,
): Promise<P[]> {
  try {
    return await readFromStart(core, listing);
  } catch (error) {
    if (!isRefusal(error, 'not_found')) throw error;
    return await readFromStart(core, listing);
  }
}

async function readFromStart<P extends { readonly next?: string }>(
  core: AccountCore,
  { relayId, method, groupId, signal, verify, signatures }: ListRequest<P>,
): Promise<P[]> {
  const pages: P[] = [];
  const seen = new Set<string>();
  const allowance = new ReadBudget(core.reading);
  let cursor: string | undefined;
  do {
    const request = { group_id: groupId, limit: pageSize };
    const params = { ...request, ...(cursor !== undefined && { cursor }) };
    const answer = await core.relay(relayId).call(method, params, { signal });
    const page = checkRelayAnswer(reason, method, () => verify(answer, request));
    pages.push(page);
    cursor = page.next;
    // With the same records again a host could lead around in a circle for ever.
    const found = signatures(page);
    if (cursor !== undefined && found.every((each) => seen.has(each))) {
      throw new RelayMisbehaviour(reason, 'the same records again', { method });
    }
    for (const each of found) seen.add(each);
    allowance.spendPage(found.length);
  } while (cursor !== undefined && !allowance.isSpent);
  return pages;
}

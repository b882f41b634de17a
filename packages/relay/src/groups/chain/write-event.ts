/** The one way of every signed link of a group's chain, from its request to its commit. */
import {
  type ChainEvent,
  checkGroupAuthority,
  decideChainEvent,
  type GroupChainBody,
  type GroupEffects,
  managementHash,
} from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import {
  type AdmissionPhase,
  type Caller,
  resolveCaller,
  writeAdmitted,
} from '../../accounts/index.ts';
import type { RelayContext } from '../../context.ts';
import type { HandlerResult } from '../../dispatch/handler.ts';
import type { DeviceSession } from '../../sessions/session.ts';
import type { Reader, Writer } from '../../storage/types.ts';
import { applyChange, type Change } from './apply-event.ts';
import { type LoadedGroup, loadGroup } from './load-group.ts';

/** What a method demands and adds beside its body, inside the commit. */
export type Completion = Pick<Change, 'arrivals' | 'uses' | 'rotation'>;

/** Everything a method may look at before its link is written. */
export interface Deciding {
  readonly tx: Writer;
  readonly group: LoadedGroup;
  readonly effects: GroupEffects;
  readonly caller: Caller;
  /** Unix seconds. */
  readonly now: number;
}

/**
 * Verifies a link, decides on it and writes it with all that follows (05 §5.2, §12.4, §12.6): the
 * signature before the transaction; group, rights, open group, head and state inside it.
 *
 * @param complete further conditions of the method, and what it adds; judged last
 * @throws ProtocolError as the chapter says of the method
 */
export async function writeLink(
  context: RelayContext,
  { session }: { readonly session: DeviceSession },
  link: ChainEvent,
  complete: (deciding: Deciding) => Promise<Completion> = async () => ({}),
): Promise<HandlerResult> {
  const { body } = link;
  const payload = canonicalJson(body);
  const head = managementHash(context.network, body);
  return await writeAdmitted(context, {
    session,
    aggregates: `group:${body.group_id}`,
    signed: body,
    admit: (tx, look) => requireAuthority(tx, session, { link, look }),
    work: async (tx, { caller, group }, now) => {
      const effects = decideChainEvent(group.view, link, session.account);
      const completion = await complete({ tx, group, effects, caller, now });
      const change = { effects, payload, head, signer: caller.signer, now, ...completion };
      return { result: null, notices: await applyChange(tx, group, change, context) };
    },
  });
}

/**
 * The calling device, and the group, in which the account may sign such a link. The targets of a
 * batch, which may be many, are looked up by the write alone: before, none of them forbids it.
 *
 * @throws ProtocolError `unauthorized`, `not_found`, `forbidden`
 */
async function requireAuthority(
  tx: Reader,
  session: DeviceSession,
  { link, look }: { readonly link: ChainEvent; readonly look: AdmissionPhase },
): Promise<{ readonly caller: Caller; readonly group: LoadedGroup }> {
  const caller = await resolveCaller(tx, session, look);
  const targets = targetsOf(link);
  const known = look.inTransaction || targets.length === 1 ? targets : [];
  const group = await loadGroup(tx, link.body.group_id, [session.account, ...known]);
  checkGroupAuthority(group.view, link, session.account);
  return { caller, group };
}

/** The accounts whose membership, role or ban a decision on the body looks at. */
function targetsOf({ kind, body }: GroupChainBody): readonly string[] {
  switch (kind) {
    case 'group.role.update':
    case 'group.member.leave':
      return [body.account];
    case 'group.owner.transfer':
      return [body.new_owner_account];
    case 'group.application.approval':
    case 'group.member.recovery.approval':
      return body.members.map(({ account }) => account);
    case 'group.member.removal':
    case 'group.member.ban':
    case 'group.member.unban':
      return body.accounts;
    default:
      return [];
  }
}

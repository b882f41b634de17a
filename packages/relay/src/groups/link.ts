/** The one way of every signed link of a group's chain, from its request to its commit. */
import {
  canonicalJson,
  decideGroupLink,
  type GroupChainBody,
  type GroupEffects,
  type GroupLink,
  type JsonObject,
  managementHash,
} from '@posthouse/protocol';
import { type Caller, requireCaller, verifyOwnSignature } from '../accounts/index.ts';
import type { Call, DeviceSession, Outcome } from '../call.ts';
import type { RelayContext } from '../context.ts';
import type { Writer } from '../storage/types.ts';
import { applyChange, type Change } from './apply.ts';
import { type LoadedGroup, loadGroup } from './view.ts';

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
  call: Call<JsonObject>,
  link: GroupLink,
  complete: (deciding: Deciding) => Promise<Completion> = async () => ({}),
): Promise<Outcome> {
  const { clock, network, storage } = context;
  const session = call.session as DeviceSession;
  const { body } = link;
  await verifyOwnSignature(context, body, { session, now: clock.now() });
  const payload = canonicalJson(body);
  const head = managementHash(network, body);
  const accounts = [session.account, ...targetsOf(link)];
  return await storage.write(`group:${body.group_id}`, async (tx) => {
    // Whatever runs out must not have when the link takes effect (05 §12.6).
    const now = clock.now();
    const caller = await requireCaller(tx, session, now);
    const group = await loadGroup(tx, body.group_id, accounts);
    const effects = decideGroupLink(group.view, link, session.account);
    const completion = await complete({ tx, group, effects, caller, now });
    const change = { effects, payload, head, signer: caller.signer, now, ...completion };
    return { result: null, notices: await applyChange(tx, group, change, context) };
  });
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

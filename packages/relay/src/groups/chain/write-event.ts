/**
 * The one way of a signed management event (05 §5.2, §12.4, §12.6): admitted by a snapshot and its
 * signature, then decided and applied in one transaction.
 */
import {
  type ChainEvent,
  checkGroupAuthority,
  decideChainEvent,
  type GroupChainBody,
  managementHash,
  type Network,
  ProtocolError,
} from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import type { CallingDevice } from '../../accounts/index.ts';
import type { RelayContext } from '../../context.ts';
import type { HandlerResult } from '../../dispatch/handler.ts';
import type { DeviceSession } from '../../sessions/session.ts';
import type { Reader } from '../../storage/types.ts';
import { admitToWrite } from './admission.ts';
import { applyEvent, type DecidedEvent, type SignedEvent } from './apply-event.ts';
import type { StoredGroup } from './group-store.ts';
import { type GroupCall, writeInGroup } from './group-transactions.ts';
import { loadGroup } from './load-group.ts';

/** Makes the signed event of a body, with what its commit stores. */
export function signedEventOf(network: Network, content: ChainEvent): SignedEvent {
  const { body } = content;
  return { content, payload: canonicalJson(body), head: managementHash(network, body) };
}

/**
 * Writes a signed management event for which the rules of the chain are all there is to check.
 *
 * A method with conditions of its own takes the same steps itself and checks between
 * {@link decideEvent} and {@link applyEvent}.
 *
 * @throws ProtocolError as the chapter says of the method
 */
export async function writeChainEvent(
  context: RelayContext,
  session: DeviceSession,
  content: ChainEvent,
): Promise<HandlerResult> {
  const call = { session, groupId: content.body.group_id };
  const event = await admitEvent(context, call, content);
  return await writeInGroup(context, call, async (tx, calling) => {
    return await applyEvent(context, tx, await decideEvent(tx, calling, event));
  });
}

/**
 * Refuses an event that its signer has no authority for, or did not sign, before the group is held.
 * Only a single target is loaded here: the targets of a batch, which may be many, the write checks.
 *
 * @returns the event, made after admission: the digest of a megabyte takes milliseconds, which a refusal does not cost
 * @throws ProtocolError `unauthorized`, `invalid_signature`, `not_found`, `forbidden`
 */
export async function admitEvent(
  context: RelayContext,
  call: GroupCall,
  content: ChainEvent,
): Promise<SignedEvent> {
  const { session, groupId } = call;
  const targets = targetsOf(content);
  const known = targets.length === 1 ? targets : [];
  await admitToWrite(context, { ...call, signed: content.body }, async (tx) => {
    const { view } = await loadGroup(tx, groupId, [session.account, ...known]);
    checkGroupAuthority(view, content, session.account);
  });
  return signedEventOf(context.network, content);
}

/**
 * Decides what an event changes, inside the transaction that writes it: the signer's authority, an
 * open group, the current head, the state that its kind asks for, then whether the group waits for its
 * owner.
 *
 * @throws ProtocolError `not_found`, `forbidden`, `state_conflict`, `bad_request`,
 *   `temporarily_unavailable`
 */
export async function decideEvent(
  tx: Reader,
  { caller, now }: CallingDevice,
  event: SignedEvent,
): Promise<DecidedEvent> {
  const { content } = event;
  const { account } = caller;
  const group = await loadGroup(tx, content.body.group_id, [account, ...targetsOf(content)]);
  const effects = decideChainEvent(group.view, content, account);
  requireOwnersTurn(group.stored, { account, now });
  return { event, group, effects, caller, now };
}

/** Seconds after which a member tries again to change a group that waits for its owner. */
const retryAfter = 600;

/**
 * Refuses others than the owner while a restored host waits for what it lost of the group: an event of
 * anyone else would continue the wrong chain for good (05 §5.6).
 *
 * @throws ProtocolError `temporarily_unavailable`
 */
function requireOwnersTurn(
  { held_until: heldUntil, owner }: StoredGroup,
  { account, now }: { readonly account: string; readonly now: number },
): void {
  if (heldUntil === null || heldUntil <= now || account === owner) return;
  throw new ProtocolError(
    'temporarily_unavailable',
    "this relay was restored from a backup: the group can be changed again once its owner's app was " +
      'online, at the latest after 7 days',
    { data: { retry_after: Math.min(retryAfter, heldUntil - now) } },
  );
}

/** The accounts whose membership, role or ban decides about a body. */
export function targetsOf({ kind, body }: GroupChainBody): readonly string[] {
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

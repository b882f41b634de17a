/** Writes signed changes to a group's chain: on the verified head, and again after a conflict. */
import {
  type ChainEvent,
  checkGroupBody,
  checkGroupParams,
  decideChainEvent,
  type GroupChainBodies,
  type GroupMethodName,
  type GroupParams,
  type GroupProjection,
  ProtocolError,
  signAsDevice,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import type { AccountCore } from '../../core.ts';
import { ClientError, isRefusal, RelayUnreachable } from '../../errors.ts';
import { recordEvents } from '../../events/event-log.ts';
import { callHost } from '../../sync/host-calls.ts';
import { asEnded, groupRow, putGroup } from '../group-rows.ts';
import { listGroupEntries } from './group-entries.ts';
import { readGroupBuffered, refreshGroup, requireGroup } from './read-group.ts';

type ChainEventKind = Exclude<keyof GroupChainBodies, 'group.create'>;
type ChainEventMethod = Exclude<GroupMethodName, 'group.create' | 'group.subscribe'>;

/** A change, signed again for every head it is tried on. */
export interface ChainWrite<M extends ChainEventMethod = ChainEventMethod> {
  readonly kind: ChainEventKind;
  readonly method: M;
  readonly signal: AbortSignal;
  /**
   * Returns the body's members in addition to type, group and head, for the state to sign on.
   * @throws ClientError if the change is not possible in that state
   */
  fields(group: GroupProjection): JsonObject | Promise<JsonObject>;
  /** Returns the parameters around the signed body; by default the body itself. */
  params?(body: JsonObject, group: GroupProjection): Promise<JsonObject>;
  /** Runs before the request is sent. */
  before?(body: SignedBody): Promise<void>;
}

type SignedBody = JsonObject & { readonly device_signature: string };

/** Limit of heads a change is tried on while other members change the group. */
const attempts = 5;

/**
 * Writes a change: reads to the head, checks it against the verified state, signs, submits. After a
 * conflict all of that is repeated; a signature is never moved to another head (05 §5.3). If an
 * answer was lost, the chain shows whether the change took effect.
 *
 * @throws ClientError `not_a_member`, `not_permitted`, `group_blocked`, `invalid_input`
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function writeChainEvent<M extends ChainEventMethod>(
  core: AccountCore,
  groupId: string,
  act: ChainWrite<M>,
): Promise<void> {
  const { signal } = act;
  const signatures = new Set<string>();
  await refreshGroup(core, groupId, signal);
  const { group: first } = await requireGroup(core, groupId);
  for (let attempt = 1; ; attempt += 1) {
    const { row, group } = await requireGroup(core, groupId);
    const body = await signBody(core, group, act);
    signatures.add(body.device_signature);
    const params = await paramsOf(core, { body, group, act });
    await act.before?.(body);
    try {
      await callHost(core, row.relay_id, { method: act.method, params, signal });
      if (act.kind === 'group.member.leave') return await markLeft(core, groupId);
      await readGroupBuffered(core, groupId, signal);
      return;
    } catch (error) {
      signal.throwIfAborted();
      const isOpen = isRefusal(error) || error instanceof RelayUnreachable;
      if (!isOpen) throw error;
      if (await hasTakenEffect(core, groupId, { act, signatures, since: first.sequence })) return;
      if (!isRefusal(error, 'state_conflict') || attempt >= attempts) throw error;
    }
  }
}

/** @throws ClientError `not_permitted`, `invalid_input` */
async function signBody(
  core: AccountCore,
  group: GroupProjection,
  act: ChainWrite,
): Promise<SignedBody> {
  const { network, account, device } = core;
  const { kind } = act;
  const $type = network.type(kind);
  const facts = await act.fields(group);
  const unsigned = { ...facts, $type, group_id: group.group_id, prev_hash: group.head };
  const body = signAsDevice(network, unsigned, device);
  try {
    const link = checkGroupBody(network, kind, body) as ChainEvent;
    decideChainEvent(group, link, account);
    return body;
  } catch (error) {
    throw asInputError(error, kind);
  }
}

async function paramsOf<M extends ChainEventMethod>(
  core: AccountCore,
  {
    body,
    group,
    act,
  }: { readonly body: SignedBody; readonly group: GroupProjection; readonly act: ChainWrite<M> },
): Promise<GroupParams<M>> {
  const params: unknown = (await act.params?.(body, group)) ?? body;
  try {
    checkGroupParams(core.network, act.method, params);
    return params as GroupParams<M>;
  } catch (error) {
    throw asInputError(error);
  }
}

/** Turns a broken rule of the chain, found before the request is sent, into a ClientError. */
function asInputError(cause: unknown, kind?: ChainEventKind): unknown {
  if (!(cause instanceof ProtocolError)) return cause;
  if (cause.code !== 'forbidden') return new ClientError('invalid_input', cause.message, { cause });
  const reason =
    kind === 'group.member.leave'
      ? 'the owner must make another member the owner before leaving'
      : 'your role does not permit this, or not for these accounts: ask the owner';
  return new ClientError('not_permitted', reason, { cause });
}

/** Whether the verified chain contains one of the requests that were sent. */
async function hasTakenEffect(
  core: AccountCore,
  groupId: string,
  {
    act,
    signatures,
    since,
  }: {
    readonly act: ChainWrite;
    readonly signatures: ReadonlySet<string>;
    readonly since: number;
  },
): Promise<boolean> {
  await refreshGroup(core, groupId, act.signal);
  const row = await core.store.read((tx) => groupRow(tx, groupId));
  // After leaving, the account cannot read the chain: the refusal is the only sign.
  if (row?.standing === 'ended') return act.kind === 'group.member.leave';
  const entries = await core.store.read((tx) => listGroupEntries(tx, groupId, { after: since }));
  return entries.some((entry) => entry.kind === 'change' && signatures.has(entry.signature ?? ''));
}

async function markLeft(core: AccountCore, groupId: string): Promise<void> {
  await core.store.write(async (tx) => {
    const row = await groupRow(tx, groupId);
    if (row === undefined) return;
    await putGroup(tx, asEnded(row));
    await recordEvents(tx, [{ kind: 'group-ended', groupId }]);
  });
  core.wakeSignal.wake();
}

import {
  checkCapacityCap,
  checkGroupParams,
  type GroupCreate,
  type GroupProjection,
  openAccessAt,
  ProtocolError,
  startGroup,
} from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import { type Caller, requireCaller, verifyOwnSignature } from '../../accounts/index.ts';
import type { RelayContext } from '../../context.ts';
import type { Handler } from '../../dispatch/handler.ts';
import type { DeviceSession } from '../../sessions/session.ts';
import type { Reader, Writer } from '../../storage/types.ts';
import { openInterval } from '../chain/access-store.ts';
import { beginEpoch } from '../chain/apply-event.ts';
import { insertEvent } from '../chain/event-store.ts';
import {
  insertGroup,
  insertMember,
  ownsGroups,
  readGroup,
  type StoredGroup,
} from '../chain/group-store.ts';
import { writeBox } from '../chain/key-store.ts';

/** `group.create` (05 §13.2). */
export const groupCreate: Handler<'group.create'> = async (context, call) => {
  const { clock, limits, network, policy, storage } = context;
  const session = call.session;
  checkGroupParams(network, 'group.create', call.params);
  const { create, client_secret_box: box } = call.params;
  checkCapacityCap(create.member_capacity, { cap: limits.groupMembers });
  const group = startHere(context, create, session);
  await verifyOwnSignature(context, create, { session, now: clock.now() });
  // With the account: its devices change before the interval opens, or find it open.
  const aggregates = [`account:${session.account}`, `group:${group.group_id}`];
  const admit = async (tx: Reader, now: number) => {
    const caller = await requireCaller(tx, session, now);
    if ((await readGroup(tx, group.group_id)) !== undefined) {
      throw new ProtocolError('state_conflict', 'the group ID is taken');
    }
    if (await ownsGroups(tx, session.account, limits.groupsOfAccount)) {
      throw new ProtocolError('rate_limited', 'the account has enough groups');
    }
    return caller;
  };
  if (policy.isOn) {
    await storage.read((tx) => admit(tx, clock.now()));
    const asked = { ask: 'group', account: session.account, address: call.address } as const;
    await policy.ask(asked, session.homeRelay);
  }
  const store = async (tx: Writer) => {
    const now = clock.now();
    const caller = await admit(tx, now);
    await storeGroup(context, tx, { group, create, caller, now, box: canonicalJson(box) });
    return { result: null };
  };
  return await storage.write(aggregates, store, { keepsFacts: true });
};

/**
 * Starts the group's chain by the rule with which clients verify it.
 * @throws ProtocolError `forbidden`, `bad_request`
 */
function startHere(
  { clock, network, identity }: RelayContext,
  create: GroupCreate,
  { account, deviceId }: DeviceSession,
): GroupProjection {
  const event = { sequence: 0, epoch: 0, payload: create, accepted_at: clock.now() };
  const { group } = startGroup(
    network,
    {
      event: { ...event, signer_device_id: deviceId },
      content: { kind: 'group.create', body: create },
      signer: { account, deviceId },
    },
    { group_id: create.group_id, relay_id: identity.relayId, creator: account },
  );
  return group;
}

interface NewGroup {
  readonly group: GroupProjection;
  readonly create: GroupCreate;
  readonly caller: Caller;
  readonly now: number;
  readonly box: string;
}

/** Stores group, owner, first event, first epoch, and the creator's box and access. */
async function storeGroup(context: RelayContext, tx: Writer, created: NewGroup): Promise<void> {
  const { group, create, caller, now, box } = created;
  const { group_id: groupId, sequence, epoch } = group;
  const { account, deviceId, signer } = caller;
  const payload = canonicalJson(create);
  const stored = rowOf(group, Buffer.byteLength(payload));
  await insertGroup(tx, stored);
  for (const member of group.members.values()) await insertMember(tx, groupId, member);
  const event = { sequence, epoch, acceptedAt: now, payload };
  await insertEvent(tx, groupId, { event, signer });
  await beginEpoch(tx, stored, now, context);
  await writeBox(tx, groupId, { boxSet: stored.box_set, account, fromEpoch: epoch, box });
  await openInterval(tx, groupId, { account, deviceId, access: openAccessAt(group) });
}

function rowOf(group: GroupProjection, bytes: number): StoredGroup {
  const { group_id, status, owner, name, description, member_capacity, invite_policy } = group;
  return {
    group_id,
    status,
    owner,
    name,
    description,
    member_capacity,
    invite_policy,
    commitment: group.client_secret_commitment,
    chain_head: group.head,
    sequence: group.sequence,
    epoch: group.epoch,
    member_count: group.members.size,
    ban_count: 0,
    access_ended: 0,
    box_set: 0,
    last_box_set: 0,
    stored_bytes: bytes,
    losses_end_at: null,
    held_until: null,
  };
}

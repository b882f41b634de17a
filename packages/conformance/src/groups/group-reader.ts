/** Reads and verifies a group as a member's device does, with the protocol package's functions. */
import {
  advanceGroup,
  checkGroupKeyPage,
  extendKeyHistory,
  type GroupKeyHistory,
  type GroupKeyPage,
  type GroupKeyResult,
  type GroupOutcome,
  type GroupProjection,
  type GroupState,
  openGroupKeys,
  openGroupMessage,
  verifyGroupSyncPage,
} from '@posthouse/protocol';
import { assertConforms, assertEqual } from '../assert.ts';
import { pollUntil } from '../fixtures/poll.ts';
import type { TestAccount, TestContext } from '../fixtures/test-context.ts';
import type { EpochSecret, GroupObjects } from './group-objects.ts';

/** The position and limit of a page. */
export interface PageRequest {
  readonly after?: number;
  readonly limit?: number;
}

/** A group's chain, verified from its creation. */
export interface Chain {
  readonly state: GroupProjection;
  /** The outcome of each readable event, in order. */
  readonly outcomes: readonly GroupOutcome[];
  /** The reading account's member key in each epoch. */
  readonly history: GroupKeyHistory;
}

/** Reads and verifies all events that a device may read (05 §5.4, §13.4). */
export async function readChain(
  group: GroupObjects,
  by: TestAccount,
  { limit }: Pick<PageRequest, 'limit'> = {},
): Promise<Chain> {
  const { groupId: group_id, context } = group;
  let state: GroupProjection | undefined;
  let history: GroupKeyHistory = [];
  const outcomes: GroupOutcome[] = [];
  for (;;) {
    const after = state?.sequence ?? -1;
    const params = { group_id, after, ...(limit !== undefined && { limit }) };
    const answer = await context.expectOk(by.caller, 'group.sync', params);
    const page = verifyGroupSyncPage(context.network, answer, params);
    const anchor = { group_id, relay_id: context.relayId };
    const advance = advanceGroup(context.network, state ?? anchor, page);
    if (advance.blocked !== undefined) throw advance.blocked.error;
    assertConforms(advance.group !== undefined, 'the chain begins with its creation');
    state = advance.group;
    outcomes.push(...advance.outcomes);
    history = extendKeyHistory(history, by.account.id, advance.outcomes);
    if (!page.has_more) return { state, outcomes, history };
  }
}

/** Lists the sequences of the messages in a chain. */
export function messagesOf({ outcomes }: Pick<Chain, 'outcomes'>): number[] {
  const messages = outcomes.filter(({ kind }) => kind === 'message');
  return messages.map((outcome) => eventOf(outcome).sequence);
}

/** Lists the kinds of a chain's events in order: `$type` without the service word. */
export function kindsOf({ outcomes }: Pick<Chain, 'outcomes'>): string[] {
  return outcomes.map((outcome) =>
    outcome.kind === 'rejected' ? 'rejected' : outcome.verified.content.kind,
  );
}

/** Waits until the relay itself has rotated keys `times` times (05 §7.3). */
export function rotatedByRelay(group: GroupObjects, by: TestAccount, times = 1): Promise<Chain> {
  return pollUntil('a rotation by the relay', async () => {
    const chain = await readChain(group, by);
    const rotations = kindsOf(chain).filter((kind) => kind === 'group.key.rotated');
    assertConforms(rotations.length <= times, `at most ${times} rotations by the relay`);
    return rotations.length === times ? chain : undefined;
  });
}

/** Returns the event of an outcome. */
export function eventOf(outcome: GroupOutcome) {
  return outcome.kind === 'rejected' ? outcome.event : outcome.verified.event;
}

/** Reads a page of `group.key.sync` and checks its form. */
export async function readKeyPage(
  group: GroupObjects,
  by: TestAccount,
  overrides: PageRequest = {},
): Promise<GroupKeyPage> {
  const request = { group_id: group.groupId, ...overrides };
  const page: unknown = await group.context.expectOk(by.caller, 'group.key.sync', request);
  checkGroupKeyPage(page, request);
  return page;
}

/** Opens a page of keys against the verified chain (05 §7.5). */
export function openKeys(
  group: GroupObjects,
  by: TestAccount,
  { page, history }: { readonly page: GroupKeyPage; readonly history: GroupKeyHistory },
): GroupKeyResult[] {
  return openGroupKeys(group.context.network, page, {
    group_id: group.groupId,
    account: by.account.id,
    deviceId: by.device.id,
    history,
    devicePrivateKey: by.device.encryptionKey,
    memberPrivateKey: (publicKey) => group.keys.privateKeyOf(publicKey),
  });
}

/** Reads, opens and verifies the keys that a device gets; returns their epochs. */
export async function readEpochs(group: GroupObjects, by: TestAccount): Promise<number[]> {
  const { history } = await readChain(group, by);
  const results = openKeys(group, by, { page: await readKeyPage(group, by), history });
  for (const { epoch, status } of results) assertEqual(status, 'verified', `epoch ${epoch} opens`);
  return results.map(({ epoch }) => epoch);
}

/** Reads, opens and verifies the secret of the current epoch. */
export async function readEpochSecret(group: GroupObjects, by: TestAccount): Promise<EpochSecret> {
  const { state, history } = await readChain(group, by);
  const page = await readKeyPage(group, by, { after: state.epoch - 1 });
  const [result] = openKeys(group, by, { page, history });
  const text = `the keys of epoch ${state.epoch} verify, not: ${result?.status ?? 'no keys'}`;
  assertConforms(result?.status === 'verified', text);
  assertEqual(result.epoch, state.epoch, 'the current epoch is served');
  return { epoch: result.epoch, applicationSecret: result.applicationSecret };
}

/** Decrypts the texts of an epoch's messages; `undefined` for one that does not open. */
export function textsOf(
  context: TestContext,
  { outcomes }: Pick<Chain, 'outcomes'>,
  { epoch, applicationSecret }: EpochSecret,
): (string | undefined)[] {
  return outcomes.flatMap((outcome) => {
    if (outcome.kind !== 'message') return [];
    const { content, signer: sender } = outcome.verified;
    if (content.kind !== 'group.message' || sender === undefined) return [];
    if (content.body.epoch !== epoch) return [];
    const bytes = openGroupMessage(context.network, content.body, { applicationSecret, sender });
    if (bytes === undefined) return [undefined];
    const plain = JSON.parse(new TextDecoder().decode(bytes)) as { body: { text: string } };
    return [plain.body.text];
  });
}

/** Calls `group.resolve`. */
export async function resolveGroup(
  group: GroupObjects,
  by: TestAccount,
  invite_id?: string,
): Promise<GroupState> {
  const params = { group_id: group.groupId, ...(invite_id !== undefined && { invite_id }) };
  const state = await group.context.expectOk(by.caller, 'group.resolve', params);
  return state as unknown as GroupState;
}

/** Reads the last readable event's sequence and the epoch after it. */
export async function readHead(
  group: GroupObjects,
  by: TestAccount,
): Promise<{ readonly sequence: number; readonly epoch: number }> {
  const { sequence, epoch } = (await readChain(group, by)).state;
  return { sequence, epoch };
}

/** Runs an action and asserts that it added no event and no epoch. */
export async function assertUnchanged<T>(
  group: GroupObjects,
  by: TestAccount,
  act: () => Promise<T>,
): Promise<T> {
  const before = await readHead(group, by);
  const outcome = await act();
  const after = await readHead(group, by);
  assertEqual(after.sequence, before.sequence, 'no event was appended');
  assertEqual(after.epoch, before.epoch, 'the epoch is unchanged');
  return outcome;
}

/** Asserts that head, commitment and owner of the chain are those of the group object. */
export function assertChainMatches(group: GroupObjects, { state }: Pick<Chain, 'state'>): void {
  assertEqual(state.head, group.head, "the chain's head is the last body that was accepted");
  assertEqual(state.client_secret_commitment, group.commitment, 'the commitment is the right one');
  assertEqual(state.owner, group.owner.account.id, 'the owner is the right one');
}

/** A group as a member's device verifies and reads it, with nothing but the client's functions. */
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
import { assertConforms } from '../assert.ts';
import { pollUntil } from '../fixtures/poll.ts';
import type { TestAccount, TestContext } from '../fixtures/test-context.ts';
import type { EpochSecret, GroupObjects } from './group-objects.ts';

/** What a page is asked for. */
export interface PageRequest {
  readonly after?: number;
  readonly limit?: number;
}

/** The chain of a group, verified from its creation on. */
export interface Chain {
  readonly state: GroupProjection;
  /** Every event that was readable, in order. */
  readonly outcomes: readonly GroupOutcome[];
  /** Keys of the reading account in each epoch. */
  readonly history: GroupKeyHistory;
}

/** Reads and verifies everything a device may read of a group (05 §5.4, §13.4). */
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

/** The sequences of the messages in a chain. */
export function messagesOf({ outcomes }: Pick<Chain, 'outcomes'>): number[] {
  const messages = outcomes.filter(({ kind }) => kind === 'message');
  return messages.map((outcome) => eventOf(outcome).sequence);
}

/** The `$type`s of a chain's events without the service word, in order. */
export function kindsOf({ outcomes }: Pick<Chain, 'outcomes'>): string[] {
  return outcomes.map((outcome) =>
    outcome.kind === 'rejected' ? 'rejected' : outcome.verified.content.kind,
  );
}

/** Waits until the relay itself has rotated keys so often (05 §7.3); it does so in its own time. */
export function rotatedByRelay(group: GroupObjects, by: TestAccount, times = 1): Promise<Chain> {
  return pollUntil('a rotation by the relay', async () => {
    const chain = await readChain(group, by);
    const rotations = kindsOf(chain).filter((kind) => kind === 'group.key.rotated');
    assertConforms(rotations.length <= times, `no more than ${times} of them`);
    return rotations.length === times ? chain : undefined;
  });
}

/** The event behind an outcome. */
export function eventOf(outcome: GroupOutcome) {
  return outcome.kind === 'rejected' ? outcome.event : outcome.verified.event;
}

/** A page of `group.key.sync`, its form checked. */
export async function readKeyPage(
  group: GroupObjects,
  by: TestAccount,
  facts: PageRequest = {},
): Promise<GroupKeyPage> {
  const request = { group_id: group.groupId, ...facts };
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

/** Epochs whose keys a device gets, each of them opened and verified. */
export async function readEpochs(group: GroupObjects, by: TestAccount): Promise<number[]> {
  const { history } = await readChain(group, by);
  const results = openKeys(group, by, { page: await readKeyPage(group, by), history });
  for (const { epoch, status } of results)
    assertConforms(status === 'verified', `epoch ${epoch} opens`);
  return results.map(({ epoch }) => epoch);
}

/** The secret of the current epoch, as a device gets and verifies it. */
export async function readEpochSecret(group: GroupObjects, by: TestAccount): Promise<EpochSecret> {
  const { state, history } = await readChain(group, by);
  const page = await readKeyPage(group, by, { after: state.epoch - 1 });
  const [result] = openKeys(group, by, { page, history });
  assertConforms(result?.status === 'verified', `the keys of epoch ${state.epoch} open and verify`);
  assertConforms(result.epoch === state.epoch, 'the current epoch is served');
  return { epoch: result.epoch, applicationSecret: result.applicationSecret };
}

/** The texts of the messages of an epoch, decrypted; `undefined` where one does not open. */
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

/** What `group.resolve` says. */
export async function resolveGroup(
  group: GroupObjects,
  by: TestAccount,
  invite_id?: string,
): Promise<GroupState> {
  const params = { group_id: group.groupId, ...(invite_id !== undefined && { invite_id }) };
  const state = await group.context.expectOk(by.caller, 'group.resolve', params);
  return state as unknown as GroupState;
}

/** The last event a device may read: its sequence and the epoch behind it. */
export async function readHead(
  group: GroupObjects,
  by: TestAccount,
): Promise<{ readonly sequence: number; readonly epoch: number }> {
  const { sequence, epoch } = (await readChain(group, by)).state;
  return { sequence, epoch };
}

/** Does something and demands that it left no event and no epoch behind. */
export async function assertUnchanged<T>(
  group: GroupObjects,
  by: TestAccount,
  act: () => Promise<T>,
): Promise<T> {
  const before = await readHead(group, by);
  const outcome = await act();
  const after = await readHead(group, by);
  assertConforms(after.sequence === before.sequence, 'no event was appended');
  assertConforms(after.epoch === before.epoch, 'the epoch is the same');
  return outcome;
}

/** Demands that the chain says of the group what its people think. */
export function assertChainMatches(group: GroupObjects, { state }: Pick<Chain, 'state'>): void {
  assertConforms(state.head === group.head, "the chain's head is the last body that was accepted");
  assertConforms(
    state.client_secret_commitment === group.commitment,
    'the commitment is the right one',
  );
  assertConforms(state.owner === group.owner.account.id, 'the owner is the right one');
}

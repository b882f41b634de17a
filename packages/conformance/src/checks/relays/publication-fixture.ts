import { type AccountRoute, encodeBase64url, type FinalRoute } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { NotApplicable } from '../../assert.ts';
import type { Account } from '../../fixtures/account.ts';
import { pollUntil } from '../../fixtures/poll.ts';
import type { TestContext } from '../../fixtures/test-context.ts';
import type { AnsweringRequest } from '../../seat/dht-service.ts';
import type { RelaySeat } from '../../seat/relay-seat.ts';
import type { Answer } from '../../transport/answer.ts';
import type { Caller } from '../../transport/caller.ts';

/** An account that is about to publish its route at the relay under test. */
export interface PublicationFixture {
  readonly context: TestContext;
  /** All other relays of the network. */
  readonly relays: readonly RelaySeat[];
  readonly account: Account;
  /** An account session. */
  readonly caller: Caller;
}

/**
 * Makes an account whose device state is at the relay under test.
 *
 * @throws NotApplicable if relays that are not the kit's could store its route
 */
export async function openPublication(context: TestContext): Promise<PublicationFixture> {
  const { seats } = context.target;
  const relays = await context.lastingSeats();
  const strangers = (await seats?.strangers(context.descriptor)) ?? 0;
  if (strangers > 0) {
    throw new NotApplicable(
      `the registry lists ${strangers} other active relays, which may store routes too`,
    );
  }
  await Promise.all(
    relays.filter(({ connections }) => connections === 0).map((one) => one.connect()),
  );
  const account = context.account();
  const caller = await context.accountSession(account, 'https');
  const state = await account.state([await account.device()]);
  await context.expectOk(caller, 'device.state.publish', state);
  return { context, relays, account, caller };
}

/** Signs a route to the relay under test. */
export async function draftOf(
  { context, account }: Pick<PublicationFixture, 'context' | 'account'>,
  fields: Partial<Parameters<Account['route']>[0]> = {},
): Promise<AccountRoute> {
  return await account.route({ relayId: context.relayId, ...fields });
}

/** Signs a route with more members. */
export async function extendedDraft(
  fixture: PublicationFixture,
  members: JsonObject,
): Promise<AccountRoute> {
  const { context, account } = fixture;
  const { account_signature: _, ...unsigned } = await draftOf(fixture);
  const extended = { ...unsigned, ...members };
  const input = context.network.bytes(extended, ['account_signature', 'relay_signature']);
  const account_signature = encodeBase64url(await account.signer.sign(input));
  return { ...extended, account_signature } as unknown as AccountRoute;
}

export async function publish({ caller }: PublicationFixture, draft: JsonObject): Promise<Answer> {
  return await caller.call('account.route.publish', draft);
}

/** Seconds after which a relay has sent to each other one again that failed in an earlier check. */
const longestPause = 90;

/** Publishes a route, again while copies are missing, and asserts success. */
export async function expectPublished(
  fixture: PublicationFixture,
  draft: JsonObject,
): Promise<FinalRoute> {
  const { context, caller } = fixture;
  const stored = async () => {
    const answer = await publish(fixture, draft);
    const isMissed = !answer.ok && answer.code === 'temporarily_unavailable';
    return isMissed ? undefined : true;
  };
  await pollUntil('the route is stored by other relays', stored, { seconds: longestPause });
  const route = await context.expectOk(caller, 'account.route.publish', draft);
  return route as unknown as FinalRoute;
}

/** Has all other relays answer requests about the account so. */
export function answerAll(
  { relays, account }: PublicationFixture,
  answering: (relay: RelaySeat) => AnsweringRequest,
): void {
  for (const relay of relays) relay.dht.answer(account.id, answering(relay));
}

/** Has all other relays answer as at first. */
export function answerAllHonestly({ relays, account }: PublicationFixture): void {
  for (const { dht } of relays) dht.reset(account.id);
}

/** Returns the texts of the account's routes that other relays were sent. */
export function sentRoutes({ relays, account }: PublicationFixture): string[] {
  return relays.flatMap(({ dht }) => dht.puts(account.id));
}

import type { TestAccount, TestContext } from '../../fixtures/test-context.ts';
import type { HomeAccount } from '../../seat/home-account.ts';
import type { RelayConnection } from '../../seat/relay-connection.ts';
import type { RelaySeat } from '../../seat/relay-seat.ts';

/** Two accounts: the relay under test is home of one, and asks the kit's relay about the other. */
export interface SourceFixture {
  readonly context: TestContext;
  readonly seat: RelaySeat;
  readonly connection: RelayConnection;
  /** At home at the relay under test. */
  readonly asker: TestAccount;
  /** At home at the seat; the relay under test has its route. */
  readonly home: HomeAccount;
}

export async function openSource(context: TestContext): Promise<SourceFixture> {
  const seat = await context.seat();
  const connection = await seat.connect();
  const home = await seat.home();
  await connection.storeRoute(home.route);
  return { context, seat, connection, home, asker: await context.testAccount() };
}

/** Clients that write messages to each other whatever happens to the relay, over both transports. */
import { join } from 'node:path';
import { loadTarget, TestContext } from '@posthouse/conformance';
import { expect } from 'vitest';
import { check } from '../cluster/checker.ts';
import { figuresOf } from '../cluster/figures.ts';
import { Debts, Load } from '../cluster/load.ts';
import { Log } from '../cluster/log.ts';
import { Member } from '../cluster/member.ts';
import { settlePerson } from '../cluster/people.ts';
import type { KillableRelay } from '../fixtures/killable-relay.ts';
import type { IsOver, Writers } from './writers.ts';

/** Devices of each person, by the transport of their clients. */
const transports = { una: ['wss', 'https'], uwe: ['wss'], udo: ['https'] } as const;

export class MessageWriters implements Writers, AsyncDisposable {
  readonly #log: Log;
  readonly #debts: Debts;
  readonly #parts: AsyncDisposableStack;
  readonly #members: readonly Member[];
  readonly #load: Load;

  private constructor(
    parts: AsyncDisposableStack,
    { log, members, load }: { log: Log; members: readonly Member[]; load: Load },
  ) {
    this.#log = log;
    this.#debts = new Debts(log);
    this.#parts = parts;
    this.#members = members;
    this.#load = load;
  }

  /**
   * @param options.folder with the registry file and the certificate authority
   * @param options.chance choices of the writers, from 0 to 1
   */
  static async open(
    ground: KillableRelay,
    { folder, chance }: { readonly folder: string; readonly chance: () => number },
  ): Promise<MessageWriters> {
    await using parts = new AsyncDisposableStack();
    const target = await loadTarget({
      relay: ground.base,
      registry: join(folder, 'registry.json'),
      ca: join(folder, 'tls', 'ca.pem'),
    });
    const stage = parts.use(await TestContext.open(target, 'wss'));
    const log = new Log();
    const people = [];
    for (const [name, kinds] of Object.entries(transports)) {
      people.push(await settlePerson(stage, name, kinds));
    }
    const members = people
      .flatMap(({ phones }) => phones)
      .map((phone) => new Member(phone, { stage, log, chance }));
    const load = parts.use(new Load(members, people, { chance }));
    // Members end first: otherwise the load waits for answers that may never come.
    parts.defer(async () => {
      await Promise.all(members.map((member) => member[Symbol.asyncDispose]()));
    });
    return new MessageWriters(parts.move(), { log, members, load });
  }

  /** Messages that were acknowledged. */
  get accepted(): number {
    return figuresOf(this.#log.entries, []).accepted;
  }

  async write(isOver: IsOver): Promise<unknown> {
    // The clients write by themselves until they are checked.
    while (!isOver()) await this.#debts.progress(1);
    return undefined;
  }

  async check(): Promise<void> {
    await this.#debts.settled(this.#load);
    await Promise.all(this.#members.map((member) => member.readAgain()));
    const problems = check(this.#log.entries).map(({ rule, text }) => `${rule}: ${text}`);
    expect(problems.slice(0, 20)).toEqual([]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.disposeAsync();
  }
}

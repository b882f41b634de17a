/** One simulation: relays, people, faults, and the rules that must hold. */
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { ProtocolError } from '@posthouse/protocol';
import type { Session } from '../../src/sessions/session.ts';
import { memoryFolder } from '../support/folder.ts';
import { Board } from './checks/board.ts';
import { ofDevice, ofTime } from './checks/changes.ts';
import { Club } from './checks/club.ts';
import { checkDeadlines } from './checks/deadlines.ts';
import { Hints } from './checks/hints.ts';
import { Mail, MailReader } from './checks/mail.ts';
import type { Agent, AgentParts, BoundSocket } from './clients/agent.ts';
import { Home } from './clients/home.ts';
import { Resident } from './clients/resident.ts';
import { Faults } from './faults.ts';
import { Journal } from './journal.ts';
import { enter } from './machine/builtins.ts';
import { Chance } from './machine/chance.ts';
import { SimulatedDisk } from './machine/disk.ts';
import { NoAnswer, SimulatedNetwork } from './machine/network.ts';
import { Scheduler, SimulatedProcess } from './machine/scheduler.ts';
import type { RelayDefect } from './relay/relay-defect.ts';
import { SimulatedRelay } from './relay/simulated-relay.ts';

/** Unix seconds at which every simulation begins. */
export const start = 1_750_000_000;

const names = ['ann', 'ben', 'cem', 'dea'];
/** Milliseconds between two rounds of checks. */
const checkInterval = 5_000;
/** Simulated milliseconds in which everything comes to its end once nothing goes wrong. */
const longestSettling = 12 * 3_600_000;

/** Milliseconds without anything new before the last checks: deadlines pass in them. */
const quietTime = 400_000;

export interface WorldOptions {
  readonly seed: number;
  readonly relays: number;
  readonly minutes: number;
  /** Folder of a database with the relay's schema. */
  readonly template: string;
  /** What is wrong with the relays on purpose. */
  readonly defect?: RelayDefect | undefined;
  /** Called with each line of the journal. */
  readonly shown?: ((line: string) => void) | undefined;
}

export class World implements Disposable {
  readonly chance: Chance;
  readonly scheduler: Scheduler;
  readonly network: SimulatedNetwork;
  readonly journal: Journal;
  readonly relays: readonly SimulatedRelay[];
  readonly homes: readonly Home[];
  readonly residents: Resident[] = [];
  readonly clubs: Club[] = [];
  readonly boards: Board[] = [];
  readonly mail: Mail;
  readonly hints: Hints;
  readonly faults: Faults;
  readonly minutes: number;
  readonly #readers = new Map<Agent, MailReader>();
  readonly #agentParts: AgentParts;
  #isEnding = false;

  constructor({ seed, relays: count, minutes, template, shown, defect = {} }: WorldOptions) {
    const chanceFor = (part: string) => new Chance(seed, part);
    this.minutes = minutes;
    this.chance = chanceFor('world');
    const scheduler = new Scheduler(chanceFor('order'));
    this.scheduler = scheduler;
    enter({ scheduler, chance: chanceFor('bytes'), start });
    const journal = new Journal(() => scheduler.milliseconds, shown);
    this.journal = journal;
    const delay = { shortest: 0.2, longest: 40 };
    const network = new SimulatedNetwork({ scheduler, chance: chanceFor('network'), delay });
    this.network = network;
    const failed = (error: unknown) => journal.failed(error);
    const relays: SimulatedRelay[] = [];
    for (let index = 0; index < count; index += 1) {
      const root = mkdtempSync(join(memoryFolder(), 'posthouse-'));
      const files = { root, database: 'relay.sqlite', unflushed: ['generation'] };
      const disk = new SimulatedDisk(files, template, chanceFor(`disk ${index}`));
      disk.rewrite = defect.rewrite ?? disk.rewrite;
      disk.hidesFaults = defect.hidesFaults ?? false;
      disk.skipsFlushes = defect.skipsFlushes ?? false;
      disk.ignoresRewrites = defect.ignoresRewrites ?? false;
      const chance = chanceFor(`relay ${index}`);
      const died = (relay: SimulatedRelay) => this.faults.died(relay);
      const parts = { scheduler, network, chance, disk, start, relays, defect, failed, died };
      relays.push(new SimulatedRelay(index, parts));
    }
    this.relays = relays;
    this.mail = new Mail(relays, journal);
    this.hints = new Hints(scheduler, journal);
    const node = { name: 'clients', process: new SimulatedProcess('clients') };
    this.#agentParts = { node, network, scheduler, chance: chanceFor('clients'), journal };
    this.homes = relays.map((relay) => new Home(relay, (session) => this.#agentOf(session)));
    this.faults = new Faults({
      ...{ scheduler, network, journal, relays, chance: chanceFor('faults') },
      restarted: (relay) => {
        this.mail.checkAll(relay);
        this.#checkStored();
      },
      cutClients: (relay, share) => this.#cutClients(relay, share),
    });
  }

  /** Whether people begin nothing new. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

  /**
   * Lets everything happen, and checks it.
   *
   * @param live what a person does the whole time
   * @throws the first rule that was broken
   */
  async run(live: (world: World, resident: Resident) => Promise<void>): Promise<void> {
    const { scheduler, journal } = this;
    let isOver = false;
    const story = this.#tell(live).then(
      () => {
        isOver = true;
      },
      (error: unknown) => journal.failed(error),
    );
    const limit = this.minutes * 60_000 + 2 * longestSettling;
    await scheduler.run(() => isOver || journal.failure !== undefined, limit);
    if (journal.failure !== undefined) throw journal.failure;
    await story;
  }

  /** What a device has read. */
  reader(owner: Resident, device: string): MailReader {
    const agent = owner.agent(device);
    const reader = this.#readers.get(agent) ?? new MailReader(this, owner, device);
    this.#readers.set(agent, reader);
    return reader;
  }

  /** Opens a device's socket at a relay, unless it has one, and subscribes to what it follows. */
  async connect(owner: Resident, device: string, { relay }: Home): Promise<void> {
    const agent = owner.agent(device);
    if (agent.bound !== undefined && this.chance.is(0.9)) return;
    agent.notified = (bound, method, params) => this.hints.heard(agent, bound, method, params);
    try {
      const bound = await agent.connect(relay);
      if (owner.home.relay === relay) {
        // From here on the connection is told of each change.
        this.hints.watch(agent, bound, { kind: 'timeline', id: owner.person.account });
      }
      await this.#subscribe(owner, agent, bound);
    } catch (error) {
      // The person tries again later.
      if (!(error instanceof ProtocolError || error instanceof NoAnswer)) throw error;
    } finally {
      if (!owner.devices.has(device)) this.hints.doubt([agent]);
    }
  }

  async foundClub(owner: Resident): Promise<void> {
    const club = await this.#unlessLate(() => Club.found(owner, this.journal));
    if (club !== undefined) this.clubs.push(club);
  }

  async createBoard(owner: Resident): Promise<void> {
    const board = await this.#unlessLate(() => Board.create(owner, this.journal));
    if (board !== undefined) this.boards.push(board);
  }

  [Symbol.dispose](): void {
    for (const relay of this.relays) relay[Symbol.dispose]();
  }

  /** Creates something; `undefined` if clocks were set forward, or the person moved, meanwhile. */
  async #unlessLate<T>(create: () => Promise<T>): Promise<T | undefined> {
    try {
      return await create();
    } catch (error) {
      const code = error instanceof ProtocolError ? error.code : undefined;
      if (code === undefined || ![...ofTime, ...ofDevice].includes(code)) throw error;
      return undefined;
    }
  }

  async #tell(live: (world: World, resident: Resident) => Promise<void>): Promise<void> {
    const { relays, scheduler, chance } = this;
    for (const relay of relays) await relay.start();
    for (const name of names) {
      const resident = new Resident(name, chance.pick(this.homes), this.#agentParts);
      this.residents.push(resident);
      await resident.register();
    }
    void this.faults.run().catch((error: unknown) => this.journal.failed(error));
    void this.#checkAlways().catch((error: unknown) => this.journal.failed(error));
    const lives = this.residents.map((resident) =>
      live(this, resident).catch((error: unknown) => this.journal.failed(error)),
    );
    await scheduler.pause(this.minutes * 60_000);
    this.#isEnding = true;
    await this.faults.heal();
    await Promise.all(lives);
    await this.#settle();
  }

  async #subscribe(owner: Resident, agent: Agent, bound: BoundSocket): Promise<void> {
    const isHere = ({ host }: Club | Board) => host.relay === bound.relay;
    const clubs = this.clubs.filter((club) => isHere(club) && club.members.has(owner));
    await bound.socket.call('group.subscribe', { group_ids: clubs.map(({ id }) => id) });
    for (const { id, members, changing } of clubs) {
      const topic = { kind: 'group', id } as const;
      this.hints.watch(agent, bound, topic);
      if (!members.has(owner) || changing.has(owner)) this.hints.doubt([agent], topic);
    }
    const boards = this.boards.filter(isHere);
    await bound.socket.call('channel.subscribe', { channel_ids: boards.map(({ id }) => id) });
    for (const { id } of boards) this.hints.watch(agent, bound, { kind: 'channel', id });
  }

  #checkStored(): void {
    for (const club of this.clubs) club.check();
    for (const board of this.boards) board.check();
  }

  async #checkAlways(): Promise<void> {
    for (;;) {
      await this.scheduler.pause(checkInterval);
      this.mail.check();
      this.hints.check();
      checkDeadlines(this.relays, this.journal);
    }
  }

  /** Waits until nothing is under way, and reads everything again. */
  async #settle(): Promise<void> {
    const { scheduler, journal } = this;
    const end = scheduler.milliseconds + longestSettling;
    while (this.mail.queued > 0 && scheduler.milliseconds < end) await scheduler.pause(60_000);
    await scheduler.pause(quietTime);
    this.mail.checkEnded();
    this.#checkStored();
    for (const club of this.clubs) club.checkHead();
    this.hints.check();
    checkDeadlines(this.relays, journal);
    for (const board of this.boards) await board.read();
    for (const club of this.clubs) {
      for (const member of club.members) await club.read(member, 'phone', 100);
    }
    for (const owner of this.residents) {
      for (const device of owner.devices) {
        const reader = this.reader(owner, device);
        await reader.readOn(owner.home.relay, 50);
        await reader.readAgain(owner.home.relay);
      }
    }
    journal.record(`${this.mail.count} messages, ${this.hints.count} hints`);
  }

  #agentOf(session: Session): Agent {
    const resident = this.residents.find(({ person }) => person.account === session.account);
    const agent =
      session.mode === 'device' ? resident?.byDeviceId.get(session.deviceId) : resident?.account;
    if (agent === undefined) throw new Error('no agent has these keys');
    return agent;
  }

  #cutClients(relay: SimulatedRelay, share: number): void {
    this.journal.record(`connections of ${relay.name} are cut`);
    for (const { byDeviceId } of this.residents) {
      for (const agent of byDeviceId.values()) {
        if (agent.bound?.relay === relay && this.chance.is(share)) agent.bound.socket.cut();
      }
    }
  }
}

/** What goes wrong in a simulation. */
import type { Journal } from './journal.ts';
import type { Chance } from './machine/chance.ts';
import type { DiskFault } from './machine/disk.ts';
import type { SimulatedNetwork } from './machine/network.ts';
import type { Scheduler, SimulatedProcess } from './machine/scheduler.ts';
import type { SimulatedRelay } from './relay/simulated-relay.ts';

/** Longest milliseconds of each. */
const longest = {
  pause: 12_000,
  stop: 8_000,
  disk: 5_000,
  loss: 8_000,
  partition: 60_000,
} as const;
/** Seconds by which one clock is set forward, all steps together, and all clocks in one step. */
const clockSteps = { one: 20, sum: 60, all: 7_200 } as const;
/** Seconds after which every job has noticed a step of its clock. */
const jobInterval = 3_700;

export interface FaultParts {
  readonly scheduler: Scheduler;
  readonly chance: Chance;
  readonly network: SimulatedNetwork;
  readonly journal: Journal;
  readonly relays: readonly SimulatedRelay[];
  /** Called when a relay answers again. */
  readonly restarted: (relay: SimulatedRelay) => void;
  /** Ends some connections of clients with a relay, or all. */
  readonly cutClients: (relay: SimulatedRelay, share: number) => void;
}

export class Faults {
  readonly #parts: FaultParts;
  readonly #steps = new Map<SimulatedRelay, number>();
  /** What faults happen to does not run them. */
  readonly #process: SimulatedProcess;
  #isOver = false;

  constructor(parts: FaultParts) {
    this.#parts = parts;
    this.#process = parts.scheduler.process;
  }

  /** Makes faults until {@link heal}. */
  async run(): Promise<void> {
    const { scheduler, chance } = this.#parts;
    while (!this.#isOver) {
      await scheduler.pause(chance.between(1_000, longest.pause));
      if (!this.#isOver) this.#next();
    }
  }

  /** Ends every fault; resolves when all relays answer. */
  async heal(): Promise<void> {
    const { network, relays, scheduler, journal } = this.#parts;
    this.#isOver = true;
    journal.record('everything is healed');
    network.heal();
    network.loss = 0;
    for (const relay of relays) relay.disk.fault = undefined;
    while (relays.some(({ process }) => process === undefined)) await scheduler.pause(1_000);
  }

  #next(): void {
    const { chance, relays, cutClients } = this.#parts;
    const relay = chance.pick(relays);
    const act = chance.weighted<() => void>([
      [3, () => this.#stop(relay, 'is killed', () => relay.kill())],
      [2, () => this.#stop(relay, 'loses power', () => relay.cutPower())],
      [2, () => this.#cutDuringFlush(relay)],
      [3, () => this.#failDisk(relay)],
      [2, () => cutClients(relay, chance.pick([0.3, 1]))],
      [2, () => this.#lose()],
      [1, () => this.#stepOne(relay)],
      [1, () => this.#stepAll()],
      [relays.length > 1 ? 4 : 0, () => this.#partition(relay)],
    ]);
    if (relay.process === undefined && relays.length === 1) return;
    act();
  }

  /** Starts a relay again that has ended because of its disk; at times, the power is cut meanwhile. */
  died(relay: SimulatedRelay): void {
    const { chance, scheduler, journal } = this.#parts;
    journal.record(`${relay.name} ends: its disk could not flush`);
    scheduler.within(this.#process, () => {
      if (chance.is(0.2)) relay.cutPower();
      this.#startAgain(relay);
    });
  }

  #cutDuringFlush(relay: SimulatedRelay): void {
    const { chance, scheduler } = this.#parts;
    const cut = () => this.#stop(relay, 'loses power', () => relay.cutPower());
    relay.disk.onFlush = (longest) => {
      relay.disk.onFlush = undefined;
      scheduler.within(this.#process, () => scheduler.after(chance.number() * longest, cut));
    };
  }

  #stop(relay: SimulatedRelay, what: string, end: () => void): void {
    if (relay.process === undefined) return;
    this.#parts.journal.record(`${relay.name} ${what}`);
    end();
    this.#startAgain(relay);
  }

  #startAgain(relay: SimulatedRelay): void {
    const { chance, scheduler, journal } = this.#parts;
    relay.disk.fault = undefined;
    scheduler.after(chance.number() * longest.stop, () => {
      relay.start().then(
        () => {
          journal.record(`${relay.name} answers`);
          this.#parts.restarted(relay);
        },
        (error: unknown) => journal.failed(error),
      );
    });
  }

  #failDisk(relay: SimulatedRelay): void {
    const { chance, scheduler, journal } = this.#parts;
    const fault = chance.pick<DiskFault>(['locked', 'full', 'failing', 'unflushable']);
    const { process } = relay;
    if (process === undefined) return;
    journal.record(`${relay.name}: the disk is ${fault}`);
    relay.disk.fault = fault;
    scheduler.after(chance.number() * longest.disk, () => {
      relay.disturb(0);
      if (relay.process === process) relay.disk.fault = undefined;
      journal.record(`${relay.name}: the disk works`);
    });
  }

  #lose(): void {
    const { chance, scheduler, journal, network } = this.#parts;
    network.loss = chance.between(0.05, 0.4);
    journal.record('messages are lost');
    scheduler.after(chance.number() * longest.loss, () => {
      network.loss = 0;
    });
  }

  #partition(relay: SimulatedRelay): void {
    const { chance, scheduler, journal, network, relays } = this.#parts;
    const other = chance.pick(relays.filter((one) => one !== relay));
    journal.record(`${relay.name} is cut off from ${other.name}`);
    network.cut(relay, other);
    if (chance.is(0.5)) network.cut(other, relay);
    scheduler.after(chance.number() * longest.partition, () => network.heal());
  }

  #stepOne(relay: SimulatedRelay): void {
    const seconds = this.#parts.chance.below(clockSteps.one);
    const sum = (this.#steps.get(relay) ?? 0) + seconds;
    if (sum > clockSteps.sum) return;
    this.#steps.set(relay, sum);
    this.#parts.journal.record(`${relay.name}: the clock steps by ${seconds} s`);
    relay.clock.step(seconds);
    relay.disturb(jobInterval);
  }

  #stepAll(): void {
    const { chance, journal, relays } = this.#parts;
    const seconds = chance.below(clockSteps.all);
    journal.record(`all clocks step by ${seconds} s`);
    for (const relay of relays) {
      relay.clock.step(seconds);
      relay.disturb(jobInterval);
    }
  }
}

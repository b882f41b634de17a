/** A whole relay in a simulation: everything but sockets and the wire between relays. */
import { parseJson } from '@posthouse/protocol/json';
import type { RelayContext } from '../../../src/context.ts';
import type { Answer, Dispatcher } from '../../../src/dispatch/dispatcher.ts';
import { combineModules } from '../../../src/dispatch/module-set.ts';
import type { RelayDispatcher, RelayReply } from '../../../src/dispatch/relay-dispatcher.ts';
import type { PeerRelay } from '../../../src/dispatch/relay-handler.ts';
import { ClockGuard } from '../../../src/jobs/clock-guard.ts';
import { JobRunner } from '../../../src/jobs/runner.ts';
import { releaseDeliveries } from '../../../src/messages/index.ts';
import { ChannelListeners } from '../../../src/notifications/channel-listeners.ts';
import { ConnectionResync } from '../../../src/notifications/connection-resync.ts';
import { FairScheduler } from '../../../src/notifications/fair-scheduler.ts';
import { GroupListeners } from '../../../src/notifications/group-listeners.ts';
import { Hub } from '../../../src/notifications/hub.ts';
import { MemoryBus } from '../../../src/notifications/memory-bus.ts';
import { openSqlite, type SqliteStorage } from '../../../src/storage/sqlite/storage.ts';
import type { StorageFaults } from '../../../src/storage/types.ts';
import { ByteAccounts } from '../../../src/transport/byte-accounts.ts';
import { WebSocketConnection } from '../../../src/transport/websocket-connection.ts';
import {
  modules,
  openModules,
  origin,
  relayKeys,
  withoutRateLimits,
} from '../../support/modules.ts';
import { silentObserver } from '../../support/silent-observer.ts';
import type { Chance } from '../machine/chance.ts';
import type { SimulatedDisk } from '../machine/disk.ts';
import type { ConnectionEnd, SimulatedNetwork } from '../machine/network.ts';
import { type Scheduler, SimulatedProcess } from '../machine/scheduler.ts';
import { SimulatedClock } from './clock.ts';
import { type PeerNode, type Peers, peersOf } from './peers.ts';
import { Breakage, type RelayDefect } from './relay-defect.ts';
import { SameThreadVerifier } from './same-thread-verifier.ts';
import { serverSocket } from './server-socket.ts';

export interface SimulatedRelayParts {
  readonly scheduler: Scheduler;
  readonly network: SimulatedNetwork;
  readonly chance: Chance;
  readonly disk: SimulatedDisk;
  /** Unix seconds at which the simulation begins. */
  readonly start: number;
  /** Every relay of the simulation, this one included; filled before they start. */
  readonly relays: readonly SimulatedRelay[];
  /** What is wrong with the relay on purpose. */
  readonly defect: RelayDefect;
  /** Called with what a listener of the bus throws, and if storage finds that it lost something. */
  readonly failed: (error: unknown) => void;
  /** Called when the process has ended because the disk could not flush. */
  readonly died: (relay: SimulatedRelay) => void;
}

/** A call over HTTP, without its headers. */
interface HttpCall {
  readonly method: string;
  readonly address: string;
  readonly body: string;
}

/** What one process of a relay holds. */
interface Running {
  readonly context: RelayContext;
  readonly dispatcher: Dispatcher;
  readonly relayDispatcher: RelayDispatcher;
  readonly hub: Hub;
  readonly bytes: ByteAccounts;
  readonly sockets: Set<WebSocketConnection>;
}

/** A machine with a relay. Its disk and its clock stay when the process ends. */
export class SimulatedRelay implements PeerNode {
  readonly name: string;
  readonly relayId: string;
  readonly clock: SimulatedClock;
  readonly disk: SimulatedDisk;
  readonly #keys: ReturnType<typeof relayKeys>;
  readonly #parts: SimulatedRelayParts;
  readonly #peers: Peers;
  #process: SimulatedProcess | undefined;
  #running: Running | undefined;
  /** Simulated milliseconds since which it answers, and until which it may be late. */
  #runsSince = 0;
  #lateUntil = 0;
  #starts = 0;

  constructor(index: number, parts: SimulatedRelayParts) {
    this.name = `relay ${index + 1}`;
    this.#parts = parts;
    this.#keys = relayKeys(0x71 + index);
    this.relayId = this.#keys.relayId;
    this.disk = parts.disk;
    this.clock = new SimulatedClock(parts.scheduler, parts.start);
    this.#peers = peersOf(this, parts.relays, parts.network);
  }

  /** The process that answers, if there is one. */
  get process(): SimulatedProcess | undefined {
    return this.#running === undefined ? undefined : this.#process;
  }

  /** Whether it has answered for so many seconds, without a fault or a step of its clock. */
  isUndisturbed(seconds: number): boolean {
    const since = Math.max(this.#runsSince, this.#lateUntil);
    return (
      this.process !== undefined &&
      this.disk.fault === undefined &&
      this.#parts.scheduler.milliseconds - since > seconds * 1_000
    );
  }

  /** Notes that it may be late for so many seconds. */
  disturb(seconds: number): void {
    const until = this.#parts.scheduler.milliseconds + seconds * 1_000;
    this.#lateUntil = Math.max(this.#lateUntil, until);
  }

  get context(): RelayContext {
    return this.#now.context;
  }

  get #now(): Running {
    if (this.#running === undefined) throw new Error(`${this.name} does not run`);
    return this.#running;
  }

  /** Starts a process; resolves when it answers. */
  async start(): Promise<void> {
    const { scheduler } = this.#parts;
    this.#starts += 1;
    const process = new SimulatedProcess(`${this.name}.${this.#starts}`);
    this.#process = process;
    const running = await scheduler.within(process, () => this.#open());
    if (process.hasEnded) return;
    this.#running = running;
    this.#runsSince = scheduler.milliseconds;
  }

  /** Kills the process. */
  kill(): void {
    this.#end();
    this.disk.kill();
  }

  /** Cuts the power of the machine. */
  cutPower(): void {
    this.#end();
    this.disk.cutPower();
  }

  /** Ends the machine. */
  [Symbol.dispose](): void {
    this.#end();
    this.disk[Symbol.dispose]();
  }

  /** Answers a call over HTTP; runs in the relay's process. */
  async answerHttp(
    { method, address, body }: HttpCall,
    token: string | undefined,
  ): Promise<Answer> {
    const { dispatcher } = this.#now;
    const credentials =
      token === undefined
        ? undefined
        : await dispatcher.checkToken(token, { method, origin, address });
    return await dispatcher.answer({
      ...{ method, origin, address, credentials, bytes: body.length },
      params: () => parseJson(body),
    });
  }

  /** Accepts a WebSocket; runs in the relay's process. */
  accept(end: ConnectionEnd, address: string): void {
    const { context, dispatcher, hub, bytes, sockets } = this.#now;
    const { socket, stream } = serverSocket(end, this.#parts.scheduler);
    const connection: WebSocketConnection = new WebSocketConnection(socket, stream, {
      ...{ context, dispatcher, hub, origin, address, bytes },
      sessionChanged: () => {},
      ended: () => void sockets.delete(connection),
    });
    sockets.add(connection);
  }

  /** Answers a frame of another relay; runs in this relay's process. */
  async answerRelay(text: string, { relayId }: PeerRelay): Promise<RelayReply> {
    return await this.#now.relayDispatcher.answer(new TextEncoder().encode(text), { relayId });
  }

  #end(): void {
    this.#running = undefined;
    this.#process?.end();
    this.#process = undefined;
  }

  async #open(): Promise<Running> {
    const { scheduler, chance, defect, failed } = this.#parts;
    const breakage = new Breakage(defect, chance);
    const storage = breakage.storage(this.#openStorage());
    const limits = withoutRateLimits;
    const clock = breakage.clock(this.clock);
    const bus = breakage.bus(new MemoryBus(failed));
    const jobs = breakage.jobs(new JobRunner('alone'));
    const peers = breakage.peers(this.#peers);
    const parts = openModules(
      {
        ...{ storage, clock, limits, bus, jobs, ...peers },
        verifier: new SameThreadVerifier(scheduler, chance),
        registryStatus: { isActive: () => Promise.resolve(true) },
      },
      this.#keys,
    );
    const { context } = parts;
    const turns = new FairScheduler(clock);
    const group = new GroupListeners(context, turns);
    const channel = new ChannelListeners(context, turns);
    const hub = new Hub(context, { group, channel }, turns);
    const all = combineModules(modules);
    new ConnectionResync(context, { hub, ...all });
    await releaseDeliveries(context);
    const guard = new ClockGuard(context);
    await guard.start();
    jobs.start(context, [guard.job, ...all.jobs], guard);
    const sockets = new Set<WebSocketConnection>();
    return { ...parts, hub, bytes: new ByteAccounts(context), sockets };
  }

  /** As a relay opens it; the flushes are the disk's. */
  #openStorage(): SqliteStorage {
    const { scheduler, failed, died } = this.#parts;
    const pause = (milliseconds: number) => scheduler.pause(milliseconds);
    const faults: StorageFaults = { flush: () => this.disk.flush(pause) };
    return openSqlite(this.disk.folder, faults, {
      ...silentObserver,
      wentBack: (count) => failed(new Error(`the database lacks ${count} transactions`)),
      damaged: (problem) => failed(new Error(problem)),
      checkpointsStopped: failed,
      unflushed: () => {
        this.kill();
        died(this);
      },
    });
  }
}

/** A person with an account in a simulation, and the agents that call with the person's keys. */
import { ProtocolError } from '@posthouse/protocol';
import { Person } from '../../fixtures/person.ts';
import type { SimulatedRelay } from '../relay/simulated-relay.ts';
import { Agent, type AgentParts } from './agent.ts';
import type { Home } from './home.ts';

/** Names of devices that a person has from the beginning; the first one is never removed. */
const firstDevices = ['phone', 'laptop'] as const;

export class Resident {
  readonly name: string;
  readonly person: Person;
  /** The key of the account. */
  readonly account: Agent;
  /** Devices that are in force, or that were and are removed, by device ID. */
  readonly byDeviceId = new Map<string, Agent>();
  /** Names of the devices in force; while one is removed, it is not here any more. */
  readonly devices = new Set<string>();
  /** When a removal was acknowledged, in simulated milliseconds, by name of the device. */
  readonly removed = new Map<string, number>();
  home: Home;
  /** Whether it is uncertain at which relay the account is at home. */
  isMoving = false;
  #hasMoved = false;
  /** Every relay at which the account was at home. */
  readonly #homes: Set<Home>;
  readonly #byName = new Map<string, Agent>();
  readonly #parts: AgentParts;
  #last: Promise<unknown> = Promise.resolve();

  constructor(name: string, home: Home, parts: AgentParts) {
    this.name = name;
    this.home = home;
    this.#homes = new Set([home]);
    this.person = new Person(home, name);
    this.#parts = parts;
    this.account = new Agent({ person: this.person, name }, parts);
  }

  /** The agents of the devices in force. */
  get agents(): Agent[] {
    return [...this.devices].map((device) => this.agent(device));
  }

  agent(device: string): Agent {
    const agent = this.#byName.get(device);
    if (agent === undefined) throw new Error(`${this.name} never had a ${device}`);
    return agent;
  }

  async register(): Promise<void> {
    for (const device of firstDevices) await this.makeDevice(device);
    await this.person.moveIn();
    for (const device of firstDevices) this.devices.add(device);
  }

  /** Makes keys and an agent; the account has the device with its next state. */
  async makeDevice(device: string): Promise<Agent> {
    const keys = await this.person.addDevice(device);
    const { person, name } = this;
    const agent = new Agent({ person, name, device: { name: device, keys } }, this.#parts);
    this.byDeviceId.set(keys.deviceId, agent);
    this.#byName.set(device, agent);
    return agent;
  }

  /**
   * Whether a relay may have an old view of the account for a while: of its home, or of a device that
   * it has or had.
   */
  isUncertainAt(relay: SimulatedRelay): boolean {
    return this.#hasMoved || this.home.relay !== relay;
  }

  /** Makes another relay the account's home. */
  async moveTo(next: Home): Promise<void> {
    this.#hasMoved = true;
    this.isMoving = true;
    for (const device of [...this.person.devices.keys()]) {
      if (!this.devices.has(device)) this.person.devices.delete(device);
    }
    const wasHome = this.#homes.has(next);
    try {
      await this.person.moveTo(next);
    } catch (error) {
      const hasLearned = error instanceof ProtocolError && error.code === 'state_conflict';
      if (!wasHome || !hasLearned) throw error;
      // A former home that had not heard that the account left takes the state as the home relay. If
      // it hears of it before the route comes, that state is none it may use: a client begins again.
      await this.person.moveTo(next);
    }
    this.#homes.add(next);
    this.home = next;
    this.isMoving = false;
  }

  /** Runs changes of the account one after another. */
  async alone<T>(change: () => Promise<T>): Promise<T> {
    const done = this.#last.then(change);
    this.#last = done.catch(() => {});
    return await done;
  }
}

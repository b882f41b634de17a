/** Accounts that move in, renew their devices and describe themselves whatever happens to the relay. */
import type { AccountDeviceState, AccountProfile, AccountRoute } from '@posthouse/protocol';
import { ProtocolError } from '@posthouse/protocol';
import type { JsonValue } from '@posthouse/protocol/json';
import { expect } from 'vitest';
import { LostAnswer } from '../fixtures/call-attempts.ts';
import type { KillableRelay } from '../fixtures/killable-relay.ts';
import type { Person } from '../fixtures/person.ts';
import type { IsOver, Writers } from './writers.ts';

/** What was last acknowledged to an account. */
interface Known {
  readonly person: Person;
  state: AccountDeviceState;
  route: AccountRoute;
  profile?: AccountProfile;
}

/** An account that gave up at an answer that was lost. */
interface Abandoned {
  readonly person: Person;
  readonly state: AccountDeviceState;
  readonly route: AccountRoute;
}

export class AccountWriters implements Writers {
  readonly #ground: KillableRelay;
  readonly #known: Known[] = [];
  readonly #abandoned: Abandoned[] = [];
  /** Its devices come and go. */
  readonly #settled: Known;
  #count = 0;

  private constructor(ground: KillableRelay, settled: Known) {
    this.#ground = ground;
    this.#settled = settled;
  }

  static async open(ground: KillableRelay): Promise<AccountWriters> {
    const person = await ground.newPerson('settled');
    return new AccountWriters(ground, await moveIn(ground, person));
  }

  async write(isOver: IsOver): Promise<unknown> {
    return await Promise.all([
      this.#moveIn(isOver),
      this.#moveInOnce(isOver),
      this.#renewDevices(isOver),
      this.#describe(isOver),
    ]);
  }

  async check(): Promise<void> {
    for (const { person, state, route, profile } of [this.#settled, ...this.#known]) {
      expect(await this.#read('account.route.resolve', person)).toMatchObject(route);
      expect(await this.#read('device.state.resolve', person)).toEqual(state);
      if (profile === undefined) continue;
      const { account } = person;
      const session = person.session();
      const stored = await this.#ground.call('profile.resolve', { account }, { session });
      expect(stored).toMatchObject({ profile });
    }
    for (const abandoned of this.#abandoned) await this.#expectWholeOrAbsent(abandoned);
  }

  async #read(method: string, person: Person): Promise<JsonValue> {
    const session = person.accountSession();
    return await this.#ground.call(method, { account: person.account }, { session });
  }

  /** New accounts: a state is staged, then the route puts it into force. */
  async #moveIn(isOver: IsOver): Promise<void> {
    while (!isOver()) {
      const person = await this.#newPerson();
      if (this.#count % 2 === 0) this.#ground.useSocket(person);
      this.#known.push(await moveIn(this.#ground, person));
    }
  }

  /** New accounts that give up when an answer is lost. */
  async #moveInOnce(isOver: IsOver): Promise<void> {
    while (!isOver()) {
      const person = await this.#newPerson();
      const state = await person.state();
      const route = await person.route();
      const options = { session: person.accountSession(), isOnce: true };
      try {
        await this.#ground.call('device.state.publish', state, options);
        await this.#ground.call('account.route.publish', route, options);
        this.#known.push({ person, state, route });
      } catch (error) {
        if (!(error instanceof LostAnswer)) throw error;
        this.#abandoned.push({ person, state, route });
      }
    }
  }

  async #expectWholeOrAbsent({ person, state, route }: Abandoned): Promise<void> {
    try {
      expect(await this.#read('account.route.resolve', person)).toMatchObject(route);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      expect(error.code).toBe('not_found');
      return;
    }
    expect(await this.#read('device.state.resolve', person)).toEqual(state);
  }

  /** A second device comes and goes; its session ends with the state that removes it. */
  async #renewDevices(isOver: IsOver): Promise<void> {
    const known = this.#settled;
    const { person } = known;
    const publish = async (state: AccountDeviceState) => {
      const session = person.accountSession();
      await this.#ground.call('device.state.publish', state, { session });
      known.state = state;
    };
    while (!isOver()) {
      this.#count += 1;
      const name = `tablet ${this.#count}`;
      await person.addDevice(name);
      await publish(await person.state());
      const asTablet = { session: person.session(name) };
      await this.#ground.call('message.timeline.sync', { after: -1, limit: 1 }, asTablet);
      const older = known.state;
      await publish(await person.state({ devices: ['phone'] }));
      const reading = this.#ground.call('message.timeline.sync', { after: -1, limit: 1 }, asTablet);
      await expect(reading).rejects.toHaveProperty(
        'code',
        expect.stringMatching(/^(unauthorized|device_unknown)$/),
      );
      person.devices.delete(name);
      // A state never goes back.
      const session = person.accountSession();
      const again = this.#ground.call('device.state.publish', older, { session });
      await expect(again).rejects.toHaveProperty('code', 'stale_state');
    }
  }

  async #describe(isOver: IsOver): Promise<void> {
    const known = this.#settled;
    const { person } = known;
    const first = this.#ground.clock.now() - 1_000_000;
    for (let turn = 0; !isOver(); turn += 1) {
      const profile = person.profile({ nickname: `name ${turn}`, updated_at: first + turn });
      const session = person.session();
      await this.#ground.call('profile.publish', profile, { session });
      known.profile = profile;
    }
  }

  async #newPerson(): Promise<Person> {
    this.#count += 1;
    return await this.#ground.newPerson(`newcomer ${this.#count}`);
  }
}

async function moveIn(ground: KillableRelay, person: Person): Promise<Known> {
  const state = await person.state();
  const route = await person.route();
  const session = person.accountSession();
  const staged = await ground.call('device.state.publish', state, { session });
  expect(staged).toHaveProperty('status', 'staged');
  await ground.call('account.route.publish', route, { session });
  return { person, state, route };
}

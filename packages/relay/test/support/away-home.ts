/**
 * The home relay of people who use another relay: it holds their device states, answers
 * `device.status`, and sends hints. With the project `away` every person declared at a relay under
 * test lives at one, so that suites written for people at home here run with callers from elsewhere.
 */
import {
  type AccountDeviceState,
  type AccountRoute,
  accountSigner,
  cosignRoute,
  deriveRelayId,
  devicesOf,
} from '@posthouse/protocol';
import { encodeRelayNotification } from '@posthouse/protocol/federation';
import { canonicalJson, type JsonObject, type JsonValue } from '@posthouse/protocol/json';
import {
  admitRemoteDevice,
  confirmRemoteDevice,
  observeRoute,
  type PresentedDevice,
} from '../../src/accounts/index.ts';
import type { RelayAnswer, RelayContext } from '../../src/context.ts';
import { digest } from '../../src/digest.ts';
import type { PeerRelay } from '../../src/dispatch/relay-handler.ts';
import { insertSession } from '../../src/sessions/session-store.ts';
import type { HomeRelay } from '../fixtures/person.ts';
import type { ManualClock } from './clock.ts';
import { network, origin } from './modules.ts';

const signer = accountSigner(network, new Uint8Array(32).fill(0x66));

/** What a home relay needs of the relay under test. */
interface Host {
  readonly clock: ManualClock;
  readonly context: RelayContext;
  answerRelay(frame: Uint8Array, peer: PeerRelay): Promise<unknown>;
  runJob(name: string): Promise<unknown>;
}

export class AwayHome implements HomeRelay {
  readonly relayId = deriveRelayId(network, signer.publicKey);
  /** The newest state of each account. */
  readonly #states = new Map<string, AccountDeviceState>();
  readonly #host: Host;
  #sessions = 0;

  /** @param host the relay under test, at which these people act */
  constructor(host: Host) {
    this.#host = host;
  }

  get clock(): ManualClock {
    return this.#host.clock;
  }

  forget(): void {
    this.#states.clear();
  }

  async call(method: string, params: unknown): Promise<JsonValue> {
    if (method === 'device.state.publish') await this.#accept(params as AccountDeviceState);
    else if (method === 'account.route.publish') await this.#publish(params as AccountRoute);
    else if (method !== 'profile.publish') throw new Error(`${method} is not for a home relay`);
    return null;
  }

  /** Answers a question of the relay under test. */
  answer(method: string, params: JsonObject): RelayAnswer {
    if (method !== 'device.status') return { kind: 'unreachable' };
    const { account, device_id: deviceId } = params as { account: string; device_id: string };
    const state = this.#states.get(account);
    const certificate = state && devicesOf(network, state).get(deviceId);
    const now = this.clock.now();
    const isActive =
      certificate !== undefined && certificate.not_before <= now && now < certificate.expires_at;
    const value = isActive
      ? { status: 'active', expires_at: certificate.expires_at }
      : { status: 'inactive' };
    return { kind: 'result', value };
  }

  /** Takes a state into force; the relay under test is sent hints of its devices, and asks. */
  async #accept(state: AccountDeviceState): Promise<void> {
    const { account } = state;
    const before = this.#states.get(account);
    this.#states.set(account, state);
    if (before === undefined) return;
    for (const deviceId of devicesOf(network, before).keys()) await this.#hint(account, deviceId);
    await this.#host.runJob('accounts.remote-devices');
    await this.#signIn(account);
  }

  async #publish(draft: AccountRoute): Promise<void> {
    await observeRoute(this.#host.context, await cosignRoute(network, signer, draft));
    await this.#signIn(draft.account);
  }

  async #hint(account: string, deviceId: string): Promise<void> {
    const params = { account, device_id: deviceId };
    const frame = encodeRelayNotification('device.status.changed', params);
    await this.#host.answerRelay(new TextEncoder().encode(frame), this);
  }

  /** Does with every current device what `auth.device.verify` does. */
  async #signIn(account: string): Promise<void> {
    const state = this.#states.get(account);
    if (state === undefined) return;
    const { context } = this.#host;
    for (const [deviceId, certificate] of devicesOf(network, state)) {
      const text = canonicalJson(certificate);
      const presented: PresentedDevice = {
        ...{ account, deviceId, certificate: text, certificateId: digest(text) },
      };
      const answer = await confirmRemoteDevice(context, presented, { asker: 'tests' });
      if (answer === undefined) throw new Error('the account is at home here');
      await context.storage.write(`account:${account}`, async (tx) => {
        const { kind } = await admitRemoteDevice(context, tx, { presented, answer });
        if (kind !== 'active') return;
        this.#sessions += 1;
        const id = `session ${this.#sessions}`;
        const expiresAt = certificate.expires_at;
        const session = { id, mode: 'device', account, deviceId, expiresAt } as const;
        await insertSession(tx, { session, origin }, 0);
      });
    }
  }
}

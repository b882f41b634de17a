/** A relay process that is killed while people call it, and the people, who do not give up. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import {
  accountAuthInput,
  type Challenge,
  deviceAuthInput,
  type ErrorCode,
  encodeBase64url,
  type MethodName,
  ProtocolError,
  relayOrigin,
} from '@posthouse/protocol';
import type { JsonObject, JsonValue } from '@posthouse/protocol/json';
import type { Session } from '../../src/sessions/session.ts';
import { ManualClock } from './clock.ts';
import { type Command, posthouse } from './command.ts';
import type { RelayData } from './engine.ts';
import { codeOf, type HttpAnswer, HttpClient } from './http.ts';
import { type Ground, Person } from './people.ts';
import { freePort } from './ports.ts';
import { network } from './world.ts';

const generous = { accountRate: 1e9, accountBurst: 1e9, addressRate: 1e9, addressBurst: 1e9 };

/** A call as a person makes it. */
export interface KillableCall {
  readonly method: string;
  readonly params: JsonObject;
}

/** What somebody who knows the methods makes of their outcomes. */
export interface Outcomes {
  /** A call has succeeded. */
  accept(call: KillableCall): void;
  /** Whether a call whose repeat is refused had succeeded when its answer was lost. */
  wasWritten(call: KillableCall, code: string): Promise<boolean>;
}

/**
 * The ground on which people found groups and channels at a process that may die at any moment. A
 * call resolves when its outcome is certain: whoever loses an answer asks again as clients do, and
 * reads what there is where it may have been written already.
 */
export class KillableGround implements Ground {
  /** Of the people: it stands still, well within the relay's tolerance. */
  readonly clock = new ManualClock(Math.floor(Date.now() / 1_000));
  /** Without it a refusal is believed, of a repeat too. */
  outcomes: Outcomes | undefined;
  /** Answers that were lost, and those among them whose write had happened. */
  readonly lost = { answers: 0, written: 0 };
  readonly #config: string;
  readonly #data: RelayData;
  readonly #people = new Map<string, Person>();
  readonly #tokens = new Map<string, string>();
  #answers = 0;
  #running: { readonly command: Command; readonly client: HttpClient } | undefined;
  #alive = Promise.withResolvers<HttpClient>();
  /** A process that ended by itself. */
  #fallen: Error | undefined;
  #relayId = '';
  #origin = '';

  private constructor(data: RelayData, config: string) {
    this.#data = data;
    this.#config = config;
  }

  static async start(data: RelayData): Promise<KillableGround> {
    const config = join(data.path, 'config.json');
    const settings = {
      ...{
        dev: true,
        log: 'error',
        network: network.context,
        host: { groups: true, channels: true },
      },
      ...{ ...data.config, listen: `127.0.0.1:${await freePort()}`, limits: generous },
    };
    writeFileSync(config, JSON.stringify(settings));
    const ground = new KillableGround(data, config);
    await ground.revive();
    return ground;
  }

  get relayId(): string {
    return this.#relayId;
  }

  /** Starts the process; calls that wait for it go on. */
  async revive(): Promise<void> {
    const command = posthouse(['serve', '--config', this.#config]);
    const [ready, https = '', , relayId = ''] = (await command.line()).split(' ');
    if (ready !== 'ready') throw new Error(command.output.errors);
    this.#relayId = relayId;
    this.#origin = relayOrigin(https);
    const ca = readFileSync(join(this.#data.path, 'tls', 'ca.pem'), 'utf8');
    const client = new HttpClient(https, ca);
    this.#running = { command, client };
    void command.ended.then((code) => {
      if (this.#running?.command !== command) return;
      this.#fallen = new Error(`the relay ended by itself: ${code} ${command.output.errors}`);
    });
    this.#alive.resolve(client);
  }

  /**
   * Kills the process that many answers from now, and some turns of the event loop later, so that
   * it is not always met as it answers. Resolves when it is gone.
   */
  async killAfter({ answers, turns }: { answers: number; turns: number }): Promise<void> {
    await this.answersFromNow(answers);
    for (let turn = 0; turn < turns; turn += 1) await setImmediate();
    // From here on calls wait for the next process.
    this.#alive = Promise.withResolvers();
    await this.#end('SIGKILL');
  }

  /** Resolves with the answer that many answers from now. */
  async answersFromNow(answers: number): Promise<void> {
    const enough = this.#answers + answers;
    while (this.#answers < enough) {
      if (this.#fallen !== undefined) throw this.#fallen;
      await setImmediate();
    }
  }

  /** Ends the process in good order. */
  async stop(): Promise<void> {
    await this.#end('SIGTERM');
  }

  async #end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    running?.command.child.kill(signal);
    await running?.command.ended;
    running?.client[Symbol.dispose]();
  }

  async person(name: string): Promise<Person> {
    const person = new Person(this, name);
    this.#people.set(person.account, person);
    await person.addDevice('phone');
    await person.moveIn();
    return person;
  }

  /** @throws ProtocolError what the relay refuses with */
  async call(
    method: string,
    params: unknown,
    { session }: { readonly session?: Session | undefined } = {},
  ): Promise<JsonValue> {
    const call = { method, params: params as JsonObject };
    for (let isRepeat = false; ; isRepeat = true) {
      const answer = await this.#try(method, call.params, session as Session);
      if (answer === undefined) continue;
      const code = codeOf(answer);
      if (code === 'ok') {
        this.outcomes?.accept(call);
        return (answer.text === '' ? null : JSON.parse(answer.text)) as JsonValue;
      }
      if (isRepeat && (await this.outcomes?.wasWritten(call, code))) {
        this.lost.written += 1;
        this.outcomes?.accept(call);
        return null;
      }
      throw new ProtocolError(code as ErrorCode, answer.text);
    }
  }

  /** One attempt; `undefined` where the answer was lost or is none. */
  async #try(
    method: string,
    params: JsonObject,
    session: Session,
  ): Promise<HttpAnswer | undefined> {
    const client = await this.#alive.promise;
    try {
      const token = this.#tokens.get(session.id) ?? (await this.#logIn(client, session));
      const answer = await client.call(method as MethodName, params, { token });
      this.#answers += 1;
      return answer.status === 503 ? undefined : answer;
    } catch (error) {
      // An answer that must not be is no lost one.
      if (error instanceof SyntaxError) throw error;
      if (this.#fallen !== undefined) throw this.#fallen;
      this.lost.answers += 1;
      return undefined;
    }
  }

  async #logIn(client: HttpClient, session: Session): Promise<string> {
    const { account } = session;
    const challenge = await client.call('auth.challenge', { account });
    const { nonce } = JSON.parse(challenge.text) as Challenge;
    const proof =
      session.mode === 'device'
        ? this.#deviceProof(session.account, nonce)
        : await this.#accountProof(session.account, nonce);
    const answer = await client.call(`auth.${session.mode}.verify`, proof);
    if (codeOf(answer) !== 'ok') throw new Error(answer.text);
    const { token } = JSON.parse(answer.text) as { token: string };
    this.#tokens.set(session.id, token);
    return token;
  }

  #person(account: string): Person {
    return this.#people.get(account) as Person;
  }

  #deviceProof(account: string, nonce: string): object {
    const { certificate, deviceId, signer } = this.#person(account).device();
    const timestamp = Math.floor(Date.now() / 1_000);
    const input = deviceAuthInput(network, {
      ...{ relay_id: this.#relayId, origin: this.#origin, account, nonce, timestamp },
      device_id: deviceId,
    });
    const device_signature = encodeBase64url(signer.sign(input));
    return { nonce, timestamp, signer_certificate: certificate, device_signature };
  }

  async #accountProof(account: string, nonce: string): Promise<object> {
    const { publicKey: account_public_key, sign } = this.#person(account).signer;
    const input = accountAuthInput(network, {
      ...{ relay_id: this.#relayId, origin: this.#origin, account, account_public_key, nonce },
    });
    const account_signature = encodeBase64url(await sign(input));
    return { nonce, account_public_key, account_signature };
  }
}

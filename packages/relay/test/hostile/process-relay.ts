/** A relay in a process of its own, with the secrets it gave out and its errors. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  accountAuthInput,
  deviceAuthInput,
  type ErrorCode,
  encodeBase64url,
  type MethodName,
  ProtocolError,
  relayOrigin,
} from '@posthouse/protocol';
import type { JsonObject, JsonValue } from '@posthouse/protocol/json';
import type { Session } from '../../src/sessions/session.ts';
import type { HomeRelay, Person } from '../fixtures/person.ts';
import { ManualClock } from '../support/clock.ts';
import { type Command, posthouse } from '../support/command.ts';
import type { RelayData } from '../support/engine.ts';
import { codeOf, HttpClient } from '../support/http.ts';
import { network } from '../support/modules.ts';
import { freePort } from '../support/ports.ts';

export class ProcessRelay implements HomeRelay, AsyncDisposable {
  /** Of the people: it stands still, within the relay's tolerance. */
  readonly clock = new ManualClock(Math.floor(Date.now() / 1_000));
  readonly people = new Map<string, Person>();
  /** Nonces and tokens that the relay gave out. */
  readonly secrets: string[] = [];
  /** Bodies of all errors. */
  readonly errors: string[] = [];
  readonly command: Command;
  readonly client: HttpClient;
  readonly wss: string;
  readonly relayId: string;
  readonly operations: string;
  readonly #origin: string;

  private constructor(
    command: Command,
    facts: Pick<ProcessRelay, 'client' | 'wss' | 'relayId' | 'operations'>,
  ) {
    this.command = command;
    this.client = facts.client;
    this.wss = facts.wss;
    this.relayId = facts.relayId;
    this.operations = facts.operations;
    this.#origin = relayOrigin(facts.client.base);
  }

  static async start(data: RelayData): Promise<ProcessRelay> {
    const port = await freePort();
    const operations = `127.0.0.1:${port}`;
    const args = ['--log', 'debug', '--data', data.path, '--network', network.context];
    const command = posthouse(['serve', '--dev', '--listen', '127.0.0.1:0', ...args], {
      POSTHOUSE_OPERATIONS_LISTEN: operations,
    });
    const [ready, https = '', wss = '', relayId = ''] = (await command.line()).split(' ');
    if (ready !== 'ready') throw new Error(command.output.errors);
    const client = new HttpClient(https, readFileSync(join(data.path, 'tls', 'ca.pem'), 'utf8'));
    return new ProcessRelay(command, { client, wss, relayId, operations: `http://${operations}` });
  }

  async call(
    method: string,
    params: unknown,
    { session }: { readonly session?: Session | undefined } = {},
  ): Promise<JsonValue> {
    const by = session && { token: await this.logIn(session) };
    const answer = await this.client.call(method as MethodName, params, by);
    const code = codeOf(answer);
    if (code === 'ok') return answer.text === '' ? null : JSON.parse(answer.text);
    this.errors.push(answer.text);
    throw new ProtocolError(code as ErrorCode, answer.text);
  }

  /** Opens a session; returns its token. */
  async logIn(session: Session): Promise<string> {
    const { account } = session;
    const { nonce } = (await this.call('auth.challenge', { account })) as { nonce: string };
    const person = this.people.get(account) as Person;
    const facts = { relay_id: this.relayId, origin: this.#origin, account, nonce };
    const proof =
      session.mode === 'device' ? this.#byDevice(person, facts) : await byAccount(person, facts);
    const { token } = (await this.call(`auth.${session.mode}.verify`, proof)) as { token: string };
    this.secrets.push(nonce, token);
    return token;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.client[Symbol.dispose]();
    this.command.child.kill('SIGTERM');
    await this.command.ended;
  }

  #byDevice(person: Person, facts: AuthFacts): JsonObject {
    const { certificate, deviceId, signer } = person.device();
    const timestamp = Math.floor(Date.now() / 1_000);
    const input = deviceAuthInput(network, { ...facts, device_id: deviceId, timestamp });
    const device_signature = encodeBase64url(signer.sign(input));
    return { nonce: facts.nonce, timestamp, signer_certificate: certificate, device_signature };
  }
}

interface AuthFacts {
  readonly relay_id: string;
  readonly origin: string;
  readonly account: string;
  readonly nonce: string;
}

async function byAccount({ signer }: Person, facts: AuthFacts): Promise<JsonObject> {
  const account_public_key = signer.publicKey;
  const input = accountAuthInput(network, { ...facts, account_public_key });
  const account_signature = encodeBase64url(await signer.sign(input));
  return { nonce: facts.nonce, account_public_key, account_signature };
}

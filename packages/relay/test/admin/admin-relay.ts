/** A relay with an admin interface, and what its operator sends. */
import { createHash, createHmac } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { pino } from 'pino';
import type { PartialConfig } from '../../src/config/index.ts';
import { Relay } from '../../src/index.ts';
import { ManualClock } from '../support/clock.ts';
import { posthouse } from '../support/command.ts';
import { RelayData } from '../support/engine.ts';

export const token = 'a1'.repeat(32);

export interface Answer {
  readonly status: number;
  readonly headers: Record<string, unknown>;
  readonly text: string;
  readonly value: Record<string, unknown>;
}

interface Asked {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

export class AdminRelay implements AsyncDisposable {
  readonly relay: Relay;
  readonly data: RelayData;
  readonly clock: ManualClock;
  /** Log lines at `warn` and above, since they were taken last. */
  readonly lines: Record<string, unknown>[];
  /** Its configuration. */
  readonly values: PartialConfig;

  private constructor(parts: Pick<AdminRelay, 'relay' | 'data' | 'clock' | 'lines' | 'values'>) {
    this.values = parts.values;
    this.relay = parts.relay;
    this.data = parts.data;
    this.clock = parts.clock;
    this.lines = parts.lines;
  }

  /** @param adminPage folder of the page; without it the one that was built, if it was */
  static async start(config: PartialConfig = {}, adminPage?: string): Promise<AdminRelay> {
    const data = await RelayData.withSchema();
    const adminTokenFile = join(data.path, 'admin.token');
    writeFileSync(adminTokenFile, `${token}\n`, { mode: 0o600 });
    const clock = new ManualClock();
    const lines: Record<string, unknown>[] = [];
    const values: PartialConfig = {
      ...data.config,
      ...{ dev: true, listen: '127.0.0.1:0', registration: 'invite' },
      operations: { listen: '127.0.0.1:0', adminTokenFile },
      ...config,
    };
    const relay = await Relay.start(values, {
      ...(adminPage !== undefined && { adminPage }),
      clock,
      log: pino({ level: 'warn', base: null }, { write: (line) => lines.push(JSON.parse(line)) }),
    });
    lines.length = 0;
    return new AdminRelay({ relay, data, clock, lines, values });
  }

  /** The address of operators, `http://127.0.0.1:49153`. */
  get address(): string {
    return this.relay.operations as string;
  }

  /** Sends a request as it is. */
  async send(path: string, { method = 'POST', headers = {}, body = '' }: Asked): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const outgoing = request(`${this.address}${path}`, { method, headers }, async (incoming) => {
      let text = '';
      for await (const chunk of incoming) text += chunk;
      const isOne = incoming.headers['content-type'] === 'application/json';
      const value = isOne ? (JSON.parse(text) as Answer['value']) : {};
      resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, text, value });
    });
    outgoing.on('error', reject);
    outgoing.end(body);
    return await promise;
  }

  /** Runs a verb, with the right token. */
  async run(verb: string, params: object = {}): Promise<Answer> {
    return await this.send(`/admin/v1/${verb}`, { headers: right, body: JSON.stringify(params) });
  }

  /** With what a command finds its admin interface. */
  get environment(): Record<string, string> {
    return {
      POSTHOUSE_OPERATIONS_LISTEN: new URL(this.address).host,
      POSTHOUSE_OPERATIONS_ADMIN_TOKEN_FILE: join(this.data.path, 'admin.token'),
    };
  }

  /** Runs the command of this relay's operator, which finds its admin interface. */
  async command(...args: string[]): Promise<{ code: unknown; output: string; errors: string }> {
    const { ended, output } = posthouse([...args, '--data', this.data.path], {
      ...this.data.environment,
      ...this.environment,
    });
    return { code: await ended, output: output.text, errors: output.errors };
  }

  /** Takes the log lines, without their times. */
  takeLines(): Record<string, unknown>[] {
    return this.lines.splice(0).map(({ time: _, ...line }) => line);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.relay[Symbol.asyncDispose]();
    await this.data[Symbol.asyncDispose]();
  }
}

/** Headers that are right. */
export const right = {
  authorization: `Bearer ${token}`,
  'content-type': 'application/json',
};

/** Signs a request as the page does; returns its header `Authorization`. */
export function signRequest(
  key: string,
  { nonce, path, body }: { readonly nonce: string; readonly path: string; readonly body: string },
): string {
  const digest = createHash('sha256').update(body).digest('hex');
  const signature = createHmac('sha256', Buffer.from(key, 'hex'))
    .update(`posthouse admin request\n${nonce}\n${path}\n${digest}`)
    .digest('hex');
  return `Posthouse ${nonce} ${digest} ${signature}`;
}

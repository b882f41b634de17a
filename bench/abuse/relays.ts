/** How the relays are made that `bench:abuse` attacks. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defaultLimits } from '../../packages/relay/src/limits.ts';
import { Cluster } from '../../packages/relay/test/cluster/cluster.ts';
import {
  RelayProcess,
  type RelayProcessOptions,
} from '../../packages/relay/test/cluster/relay-process.ts';
import { posthouseCommand } from '../../packages/relay/test/support/bundled-command.ts';
import { withoutNats } from '../../packages/relay/test/support/nats.ts';
import { SmallDisk } from '../../packages/relay/test/support/small-disk.ts';
import { MeasuredProcess } from '../measured-process.ts';
import { writeConfig } from '../support.ts';

/** A relay under attack, with the limits of production. */
export interface AttackedRelay {
  /** HTTPS base address. */
  readonly base: string;
  /** The folder of its data, registry file and certificates. */
  readonly folder: string;
  /** Of its processes. */
  readonly pids: readonly number[];
  /** What befalls it while it is attacked; undone when the result is disposed of. */
  readonly befall?: () => Promise<AsyncDisposable>;
}

/** How the Node of a relay is started. */
export type NodeOptions = Pick<RelayProcessOptions, 'flags' | 'env'>;

/**
 * Makes a relay whose parts go onto the stack.
 * @param node only for a relay of one process
 * @throws NotHere if this machine lacks what it needs
 */
export type MakeRelay = (parts: AsyncDisposableStack, node: NodeOptions) => Promise<AttackedRelay>;

/** The machine lacks what a row needs. */
export class NotHere extends Error {}

// The bench's own accounts come from one address too.
const limits = { ...defaultLimits, accountsPerAddress: 2 * defaultLimits.accountsPerAddress };

/** One process on SQLite. */
export const oneProcess: MakeRelay = async (parts, node) => {
  const folder = mkdtempSync(join(tmpdir(), 'posthouse-bench-'));
  parts.defer(() => rmSync(folder, { recursive: true, force: true }));
  return await startIn(folder, parts, node);
};

/** One process on SQLite, with a disk of 16 MiB of its own. */
export const onSmallDisk: MakeRelay = async (parts, node) => {
  const disk = SmallDisk.mount();
  if (disk === undefined) throw new NotHere('this user may not mount a file system');
  parts.use(disk);
  const folder = join(disk.path, 'relay');
  mkdirSync(folder);
  return await startIn(folder, parts, node);
};

/** Three processes on PostgreSQL with NATS, which ends when the attack begins. */
export const withoutBus: MakeRelay = async (parts) => {
  if (withoutNats !== undefined) throw new NotHere(withoutNats);
  const cluster = parts.use(await Cluster.start({ processes: 3, limits }));
  const { folder, nats, pids, target } = cluster;
  const befall = async () => {
    await nats.stop();
    return { [Symbol.asyncDispose]: () => nats.start() };
  };
  return { base: target.baseUrl, folder, pids, befall };
};

async function startIn(
  folder: string,
  parts: AsyncDisposableStack,
  node: NodeOptions,
): Promise<AttackedRelay> {
  const config = writeConfig(folder, { limits });
  const relay = parts.use(
    await RelayProcess.start({ config, port: 0, main: posthouseCommand, ...node }, console.error),
  );
  return { base: relay.base, folder, pids: [relay.pid] };
}

/** Starts the server that does nothing, with the relay's certificate. */
export async function startBareServer(
  parts: AsyncDisposableStack,
  relayFolder: string,
): Promise<{ readonly pid: number; readonly host: string }> {
  const program = new URL('bare-server.ts', import.meta.url).pathname;
  const server = parts.use(
    await MeasuredProcess.start([program, join(relayFolder, 'tls')], { isProbed: false }),
  );
  return { pid: server.pid, host: `127.0.0.1:${server.facts[0]}` };
}

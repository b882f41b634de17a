/** `posthouse registry`: this relay's record in the registry, and the invocations that change it. */
import {
  type ChainRegistry,
  type Network,
  type RegistryChange,
  type RelayEntry,
  registryInvocation,
} from '@posthouse/protocol';
import { terminalJson, terminalLine } from '@posthouse/protocol/terminal';
import { Argument, type Command } from 'commander';
import { systemClock } from '../clock.ts';
import { listenAddress, publicAddresses } from '../config/addresses.ts';
import type { RelayConfig } from '../config/index.ts';
import { LongWork } from '../dispatch/long-work.ts';
import {
  FileRegistry,
  type OwnRecordFinding,
  openChain,
  ownRecordFinding,
  registryPath,
} from '../federation/index.ts';
import { relayIdentity } from '../keys/identity.ts';
import { loadKeys } from '../keys/keys.ts';
import { createLog } from '../observability/log.ts';
import { Metrics } from '../observability/metrics.ts';
import { configFrom, type Flags, networkOf } from './config-flags.ts';
import { addRelay, endpointOf, listRelays } from './registry-file.ts';
import { asksStorage, relayOf, subcommand } from './storage-command.ts';
import { note, print } from './terminal-output.ts';

const help = `
The registry of an open network is a contract on a Neo N3 chain. This command never signs: it has no
wallet and asks for no key. Registering a relay takes three steps:
  1. posthouse registry invocation register    prints the JSON-RPC request that simulates it
  2. sign and send it with the wallet of the relay's account, with the scope that the request has
  3. posthouse registry check                  says what the chain has, and what to do

The registry of a private network is a file: list and add read and change it, for all relays of the
network, which need the same file.

Exit status: 0 done, 1 failed or the record is not as it must be, 2 wrong arguments or configuration.

Examples:
  posthouse registry invocation register --config relay.json
  posthouse registry invocation update-endpoint --config relay.json
  posthouse registry check --config relay.json
  posthouse registry add 0x0123... https://two.example.net/svc/v1 --config relay.json
  posthouse registry list --config relay.json`;

const tasks = ['register', 'update-endpoint', 'enable', 'disable'] as const;
type Task = (typeof tasks)[number];

/** Completes `posthouse registry`. */
export function configure(command: Command): void {
  asksStorage(command)
    // Flags after a verb belong to it.
    .enablePositionalOptions()
    .addHelpText('after', help)
    .action((_, of: Command) => of.help({ error: true }))
    .addCommand(
      subcommand(
        'invocation',
        'print the JSON-RPC request of a change, to simulate and sign elsewhere',
      )
        .addArgument(new Argument('<task>', 'what changes').choices(tasks))
        .action((task: Task, _, of) => invocation(task, of)),
    )
    .addCommand(
      subcommand('check', "read this relay's record back, and say what to do")
        .option('--json', 'print one JSON object for each node or file')
        .action((_, of) => check(of)),
    )
    .addCommand(
      subcommand('list', 'list the relays in the registry file of a private network')
        .option('--json', 'print one JSON object per line')
        .action((_, of) => listRelays(of)),
    )
    .addCommand(
      subcommand('add', 'enter a relay into the registry file of a private network')
        .argument('<relay>', 'relay ID, as `posthouse init` prints it', relayOf)
        .argument('<https-address>', 'its HTTPS base address', endpointOf)
        .action((relay: string, endpoint: string, _, of) => addRelay(of, { relay, endpoint })),
    );
}

interface Own {
  readonly config: RelayConfig;
  readonly network: Network;
  readonly relayId: string;
  /** The HTTPS address that the registry must have. */
  readonly endpoint: string;
}

async function ownRelay(of: Command): Promise<Own> {
  const { config } = configFrom(of.optsWithGlobals() as Flags, 'descriptor');
  const network = networkOf(config);
  const { relayId } = relayIdentity(network, await loadKeys(config.data));
  const addresses = publicAddresses(network, config);
  addresses.setPort(listenAddress(config).port);
  return { config, network, relayId, endpoint: addresses.https[0] as string };
}

async function invocation(task: Task, of: Command): Promise<void> {
  const own = await ownRelay(of);
  const { config, network, relayId, endpoint } = own;
  const change: RegistryChange =
    task === 'enable' || task === 'disable' ? { task } : { task, endpoint };
  print([JSON.stringify(registryInvocation(network, relayId, change), undefined, 2)]);
  for (const line of advice(task)) note(line);
  if (task === 'register' && typeof config.registry !== 'string') note(await feeNote(own));
}

/** The safe procedure (07 §A7). */
function advice(task: Task): string[] {
  return [
    'Send this request to a node: it must answer HALT and true. HALT with false is a refusal.',
    ...(task === 'register'
      ? ['Sign with the scope CustomContracts of the request: CalledByEntry cannot pay the fee.']
      : []),
    'Then sign and send the transaction, wait for its block, and run: posthouse registry check',
  ];
}

async function feeNote(own: Own): Promise<string> {
  const reads = await readEach(own, (node) => node.registrationFee());
  const read = reads.find((one) => 'value' in one);
  if (read === undefined) {
    const failures = reads.map((one) => ('failure' in one ? one.failure : ''));
    return `The fee could not be read: ${terminalLine(failures.join('; '))}`;
  }
  const whole = Math.floor(read.value / gasUnits);
  const rest = String(read.value % gasUnits)
    .padStart(8, '0')
    .replace(/0+$/, '');
  const fee = rest === '' ? `${whole}` : `${whole}.${rest}`;
  return `The registration costs ${fee} GAS now; what counts is the fee at its execution.`;
}

/** The smallest units of one GAS (07 §A4). */
const gasUnits = 100_000_000;

async function check(of: Command): Promise<void> {
  const own = await ownRelay(of);
  const kind = typeof own.config.registry === 'string' ? 'file' : 'chain';
  const { json } = of.optsWithGlobals<{ readonly json?: boolean }>();
  const reads =
    kind === 'chain'
      ? await readEach(own, (node) => node.getRelay(own.relayId))
      : [await readFile(own)];
  const findings = reads.map((read): Finding => {
    if ('failure' in read) {
      const cure = kind === 'chain' ? 'check the address of the node, or use another' : undefined;
      return { source: read.source, isGood: false, seen: read.failure, cure };
    }
    const finding = ownRecordFinding(read.value, { endpoint: own.endpoint, kind });
    return { source: read.source, cure: undefined, ...finding };
  });
  if (json) print(findings.map((finding) => terminalJson(wireOf(own.relayId, finding))));
  else print([`relay ${own.relayId}`, ...findings.flatMap(linesOf)]);
  if (findings.some(({ isGood }) => !isGood)) process.exitCode = 1;
}

interface Finding extends Omit<OwnRecordFinding, 'cure'> {
  /** The file, or the origin of the node. */
  readonly source: string;
  readonly cure: string | undefined;
}

function linesOf({ source, isGood, seen, cure }: Finding): string[] {
  const lines = [`${isGood ? 'ok  ' : 'FAIL'}  ${terminalLine(source)}: ${terminalLine(seen)}`];
  return cure === undefined ? lines : [...lines, `      ${cure}`];
}

function wireOf(relayId: string, { source, isGood, seen, cure }: Finding): object {
  return { relay_id: relayId, source, good: isGood, seen, cure };
}

type Read<T> =
  | { readonly source: string; readonly value: T }
  | { readonly source: string; readonly failure: string };

async function readFile({ config, network, relayId }: Own): Promise<Read<RelayEntry | undefined>> {
  const { registry, data } = config;
  const source = registryPath({ data, registry: registry as string });
  try {
    return { source, value: await new FileRegistry(network, source).getRelay(relayId) };
  } catch (error) {
    return { source, failure: (error as Error).message };
  }
}

/** Reads each configured node by itself: a node that lags or lies is seen. */
async function readEach<T>(
  { config, network }: Own,
  read: (node: ChainRegistry) => Promise<T>,
): Promise<Read<T>[]> {
  const { registry, limits, log: level } = config;
  if (typeof registry === 'string') return [];
  using parts = new DisposableStack();
  const log = createLog(level === 'debug' ? level : 'silent');
  const common = { network, limits, log, metrics: new Metrics(), clock: systemClock, parts };
  return await Promise.all(
    registry.nodes.map(async (url): Promise<Read<T>> => {
      const source = new URL(url).origin;
      try {
        const longWork = new LongWork();
        const node = await openChain({ nodes: [url] }, config, { ...common, longWork });
        return { source, value: await read(node) };
      } catch (error) {
        return { source, failure: (error as Error).message };
      }
    }),
  );
}

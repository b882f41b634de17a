import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Tests of relay and kit that store nothing, or are about one engine and bring it themselves. */
const relayOnce = [
  'packages/relay/test/{config,crypto,jobs,keys,notifications,observability,sessions,tls}/**',
  'packages/relay/test/{backup,cluster,move,postgres,simulation}/**',
  'packages/relay/test/federation/{address-filter,descriptor-fetch,dht-candidates,dht-lookup,dht-routes,dht-table,kept-registry,registry,request-slots}.test.ts',
  'packages/relay/test/federation/dht-simulation/**',
  'packages/relay/test/storage/sqlite*.test.ts',
  'packages/relay/test/{accounts/rules,commands/{dev,init,main,start-faults},dispatch/{encode,rate-limiter}}.test.ts',
  'packages/relay/test/{blocks,transport}/addresses.test.ts',
  'packages/relay/test/policy/program.test.ts',
  'packages/conformance/test/{main,report}.test.ts',
];

/** Tests of the client that show how the relay behaves towards a whole client. */
const clientPerEngine =
  'packages/client/test/{content,devices,interrupted,move,story,{channels,groups,network}/story}.test.ts';

/**
 * Tests of groups and channels that run once more with callers who are at home at another relay:
 * forms, rights and refusals of every method must be the same for them.
 */
const awayCallers = 'packages/relay/test/{channels,groups}/methods/**/*.test.ts';

/** Tests of relays that share a database: SQLite is for one. */
const severalProcesses = 'packages/relay/test/nats/**';

/**
 * Tests whose SQL is common to both engines: forms, rights and refusals of one method, of clients or
 * of relays, transports, whole clients, relays that lie, checks that must fail. They run on SQLite. PostgreSQL executes the same statements
 * in the kit, which calls every method, and in tests of models, races, plans, jobs and crashes.
 */
const commonSql = [
  'packages/relay/test/*/{methods,relay-methods}/**',
  'packages/relay/test/accounts/{ask-home,forwarded-profiles,forwarded-states}.test.ts',
  'packages/relay/test/{about,auth,hostile,transport,web}/**',
  'packages/relay/test/{admin/page,blocks/served}.test.ts',
  'packages/relay/test/commands/{account,block,clock,invite,peers,peers-network,reports,withhold}.test.ts',
  'packages/relay/test/channels/fan-out.test.ts',
  'packages/relay/test/federation/{call-window,dht-abuse,dht-abuse-candidates,eligibility,hostile-peer,request-vectors,serving}.test.ts',
  'packages/relay/test/messages/{delivery,delivery-cost}.test.ts',
  'packages/relay/test/network/{lying,skew}.test.ts',
  'packages/client/test/{content,devices,interrupted}.test.ts',
  'packages/conformance/test/{reversed-answers,seeded-faults}.test.ts',
];

/**
 * What `npm run test:fast` leaves out, in addition to PostgreSQL: tests with processes, browsers or
 * crowds of connections, random sequences, crashes, the kit, and relays that lie to clients.
 */
const slow = [
  'packages/relay/test/{backup,cluster,commands,federation/dht-simulation,move,postgres,simulation}/**',
  'packages/**/{crash,hostile,interrupted-move,killed-leaders,model,*-model,races,fan-out}.test.ts',
  'packages/client/test/**/{endless,large,long-runs,lying*,hostile-host,several-hosts}.test.ts',
  'packages/conformance/test/{kit,main,notices}.test.ts',
  'packages/{client/test/{attachments,content}/browser.test.ts,client/test/attachments/upload-progress.test.ts,client/test/web/**,protocol/test/browser/**,web/test/**}',
  'bench/**',
  'scripts/build.test.ts',
];

/**
 * What `npm run test:long` runs and `npm test` leaves out: depth. More kills, faults and seeds, crowds
 * of connections, relays of several processes under load, checks of the kit against wrong answers,
 * and on PostgreSQL all but storage, races, jobs and several processes. Each rule has a test in
 * `npm test` too.
 */
const long = {
  once: [
    'packages/client/test/attachments/upload-progress.test.ts',
    'packages/client/test/events/killed-leaders.test.ts',
    'packages/client/test/groups/crash.test.ts',
    'packages/client/test/messages/outages.test.ts',
    'packages/client/test/network/interrupted-move.test.ts',
    'packages/client/test/own-devices/killed.test.ts',
    'packages/client/test/web/passkey.test.ts',
    'packages/client/test/web/store-faults.test.ts',
    'packages/client/test/web/tabs.test.ts',
    'packages/client/test/web/worker.test.ts',
    'packages/web/test/admin-story.test.ts',
    'packages/web/test/{addresses,attachments,block,camera,channels,devices,forms,groups,groups-recovery,hostile,invitations,key-passkey,link-codes,lock,names,notify,settings,story,tabs}.test.ts',
    'packages/web/test/{drafts,ending,lock-crash,updates}.test.ts',
    'packages/web/test/{engines,screens-engines}.test.ts',
    'packages/web/test/reading.test.ts',
    'packages/web/test/screens.test.ts',
    'packages/relay/test/{cluster,federation/dht-simulation}/**/*.test.ts',
    'packages/relay/test/backup/{killed,tampered}.test.ts',
    'packages/relay/test/move/{crashes,rows}.test.ts',
    'packages/relay/test/postgres/{restart,upgrades}.test.ts',
  ],
  sqlite: [
    'packages/conformance/test/{reversed-answers,seeded-faults}.test.ts',
    'packages/relay/test/admin/killed-deletion.test.ts',
    'packages/relay/test/channels/fan-out.test.ts',
    'packages/relay/test/{crash,network}/crash.test.ts',
  ],
  away: [],
  postgres: [
    clientPerEngine,
    'packages/conformance/test/*.test.ts',
    'packages/relay/test/*.test.ts',
    'packages/relay/test/!(nats|storage)/**/!(*races|*jobs|*-job).test.ts',
    'packages/relay/test/nats/{groups,network,operator}.test.ts',
  ],
};

/** What both run: `npm test` makes some of the runs, `npm run test:long` the others (`test/support/chance.ts`). */
const shared = {
  once: [
    'packages/client/test/{messages/crash,restored-verify}.test.ts',
    'packages/relay/test/storage/sqlite-power-cut.test.ts',
  ],
  sqlite: [
    'packages/conformance/test/kit.test.ts',
    'packages/relay/test/{channels,groups}/{model,races}.test.ts',
    'packages/relay/test/channels/retention-model.test.ts',
  ],
  away: [],
  postgres: [
    'packages/relay/test/{channels,groups}/races.test.ts',
    'packages/relay/test/nats/{channel,group}-races.test.ts',
  ],
};

interface Files {
  readonly include: string[];
  readonly exclude: string[];
}

/** Returns the files of a project in a mode; without a mode, which is vitest's `test`, all of them. */
function filesOf(project: keyof typeof long, { include, exclude }: Files, mode: string) {
  const env = (share: string) => ({ TEST_SHARE: share });
  switch (mode) {
    case 'long':
      return { include: [...long[project], ...shared[project]], exclude, env: env('rest') };
    case 'usual':
      return { include, exclude: [...exclude, ...long[project]], env: env('part') };
    case 'fast':
      return { include, exclude: [...exclude, ...slow], env: env('part') };
    default:
      return { include, exclude, env: env('all') };
  }
}

const once = {
  include: [
    'packages/!(conformance|relay)/test/**/*.test.ts',
    '{bench,scripts}/**/*.test.ts',
    ...relayOnce.map((files) => files.replace(/\*\*$/, '**/*.test.ts')),
  ],
  exclude: [clientPerEngine],
};

/** Whatever else is in these folders runs once on each engine. */
const perEngine = ['packages/{conformance,relay}/test/**/*.test.ts', clientPerEngine];
const onSqlite = { include: perEngine, exclude: [...relayOnce, severalProcesses] };
const onPostgres = { include: perEngine, exclude: [...relayOnce, ...commonSql] };

/**
 * What the model tests make their sequences from. One seed for all, so that a change is judged by
 * what it changed; `TEST_SEED=random` or a number looks at others. No name that begins like those
 * of settings: relays that tests start would refuse it.
 */
const { TEST_SEED: asked = '4711' } = process.env;
const testSeed = asked === 'random' ? String(Date.now() % 0x7fffffff) : asked;

/** Short files that take long: what they run is elsewhere. */
const longest = /\/(?:kit|crash|model|races)\.test\.ts$/;

/**
 * Begins with the longest files of each project. Without the times of earlier runs, vitest begins
 * with the largest ones, and one worker would wait for the other at the end.
 */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const projects = [...Map.groupBy(sorted, ({ project }) => project.name).values()];
    const isLong = ({ moduleId }: TestSpecification) => longest.test(moduleId);
    return projects.flatMap((of) => of.toSorted((a, b) => Number(isLong(b)) - Number(isLong(a))));
  }
}

// Half of what it takes to start a relay of its own process, or a command, is to compile them.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(
  new URL('node_modules/.cache/compiled', import.meta.url),
);

export default defineConfig(({ mode }) => ({
  test: {
    env: { TEST_SEED: testSeed },
    setupFiles: fileURLToPath(new URL('scripts/property-tests.ts', import.meta.url)),
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Of what must come: only a failure waits for as long, and a busy machine is no failure.
    expect: { poll: { timeout: 30_000 } },
    // To load the sources anew for each file would take a fifth of the time of all tests.
    isolate: false,
    // A test waits for relays, disks and servers half of the time: one worker more than is usual.
    maxWorkers: availableParallelism(),
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        extends: true,
        test: {
          name: 'once',
          ...filesOf('once', once, mode),
        },
      },
      {
        extends: true,
        test: {
          name: 'sqlite',
          ...filesOf('sqlite', onSqlite, mode),
          provide: { engine: 'sqlite' },
          globalSetup: 'packages/relay/test/support/sqlite-setup.ts',
        },
      },
      {
        extends: true,
        test: {
          name: 'away',
          ...filesOf('away', { include: [awayCallers], exclude: [] }, mode),
          provide: { engine: 'sqlite', callers: 'away' },
          globalSetup: 'packages/relay/test/support/sqlite-setup.ts',
        },
      },
      {
        extends: true,
        test: {
          name: 'postgres',
          ...filesOf('postgres', onPostgres, mode),
          provide: { engine: 'postgres' },
          globalSetup: 'packages/relay/test/support/postgres-setup.ts',
        },
      },
    ],
  },
}));

/**
 * A process whose disk fails in the fifth flush: `unflushable-process.ts <folder>`. It prints the name
 * of each row that was acknowledged as written.
 */
import { createLog } from '../../src/observability/log.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import { openObservedStorage } from '../../src/storage/observed.ts';

const [data = ''] = process.argv.slice(2);
let flushes = 0;
const storage = await openObservedStorage(
  { data, storage: { engine: 'sqlite', url: '', connections: 2 }, bus: { nats: '' } },
  {
    faults: {
      flush: (flush) => {
        flushes += 1;
        if (flushes < 5) return flush();
        return Promise.reject(Object.assign(new Error('EIO: i/o error, fdatasync'), { errno: -5 }));
      },
    },
    observed: { log: createLog('info'), metrics: new Metrics() },
    unannounced() {},
    reachable() {},
    upcoming: () => undefined,
  },
);
await storage.write('x', (tx) => tx.run('CREATE TABLE things (name TEXT PRIMARY KEY)'));
for (let number = 0; number < 100; number += 1) {
  const name = `row ${number}`;
  await storage.write('x', (tx) => tx.run('INSERT INTO things (name) VALUES (?)', name));
  process.stdout.write(`${name}\n`);
}

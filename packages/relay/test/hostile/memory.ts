import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Returns the mebibytes of the heap that are in use after a full collection. */
export async function heapInUse(): Promise<number> {
  for (let round = 0; round < 3; round += 1) {
    collect();
    await new Promise((resolve) => setImmediate(resolve));
  }
  return Math.round(process.memoryUsage().heapUsed / 104_857.6) / 10;
}

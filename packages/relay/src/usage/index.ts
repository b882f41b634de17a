export { DailyByteCounts } from './daily-bytes.ts';
export { dailyBytesJob } from './jobs.ts';
export { usageMigrations } from './migrations.ts';
export { requireRoom } from './room.ts';

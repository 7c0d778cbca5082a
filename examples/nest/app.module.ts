import { Module } from '@nestjs/common';
import { ENDPOINTS } from '../support/servers.ts';
import { RemoraModule } from './remora.module.ts';
import { StockService } from './stock.service.ts';

@Module({ imports: [RemoraModule.forRoot({ endpoints: ENDPOINTS })], providers: [StockService] })
export class AppModule {}

module example.com/remora

go 1.19
